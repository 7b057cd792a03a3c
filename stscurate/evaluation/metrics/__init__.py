"""What is told of similarities against gold, a metric a file."""
