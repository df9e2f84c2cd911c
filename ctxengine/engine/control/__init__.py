"""Control tools: tools the platform itself answers, so that typed calls and never prose change its state."""
