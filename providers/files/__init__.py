"""Files on disk: recognising, reading and loading deliveries."""
