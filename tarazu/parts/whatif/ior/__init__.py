"""What slow ranks cost a run of IOR or IO500, from its outputs."""
