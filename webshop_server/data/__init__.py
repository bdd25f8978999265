"""What is for sale: products, where they are read from, and the packed form on disk."""
