"""What the domain asks of the outside world, as Protocols. The adapters implement them."""
