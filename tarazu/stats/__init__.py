"""Statistics of Lustre servers: readers and parsers, the collector, the system view and OST speeds."""
