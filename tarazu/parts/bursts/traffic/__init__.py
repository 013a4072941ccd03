"""What each compute node moved when (`traffic`), whose job ran there (`batch_job`), what serves it (`machine`)."""
