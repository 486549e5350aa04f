"""The replay memory that learners share."""
