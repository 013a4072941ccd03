"""When a slow disk is seen, and which healthy one is taken for slow, on generated loads with fixed seeds."""
