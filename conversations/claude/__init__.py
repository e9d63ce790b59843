"""The only client of the Messages API, and the product's only import of the SDK."""
