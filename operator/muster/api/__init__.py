"""What users write and read: the TrainingJob, its status, the profile report, the words on the objects Muster makes.

Pure data. Everything else in Muster imports this package; it imports nothing of Muster.
"""
