"""What gathers from state and warehouse for reviewers and auditors."""
