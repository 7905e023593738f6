"""What controllers answer in another way than brokers do."""
