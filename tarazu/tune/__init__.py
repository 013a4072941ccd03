"""Parameters that learn: which value of a lever serves the access pattern that servers see now.

pattern       what is learned about: the context of a bandit; how alike two patterns are
observation   what one node saw in one interval
detect/       from an observation to its pattern
learning/     learners: from patterns and rewards to the next value; the paper's and ours
levers/       parameters that Lustre has, each with its few values
council       from what all nodes of a group see to what all should have in force; trial: did it make things worse?
exchange      what announcers and a council say to one another
"""
