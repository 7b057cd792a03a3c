"""Services: models and endpoints behind small interfaces that know nothing of the stages."""
