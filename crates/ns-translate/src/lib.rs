//! Documents to workspaces and back: pyhf JSON, patches, patch sets, digests.
