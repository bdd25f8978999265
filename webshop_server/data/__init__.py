"""The products for sale: raw files, the bundled catalogue, and the packed form on disk."""
