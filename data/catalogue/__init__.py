"""Reference tables that ship with the package; see SOURCES.md beside them."""
