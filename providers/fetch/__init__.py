"""Exports pulled from where each cloud puts them: listed, chosen, downloaded, loaded."""
