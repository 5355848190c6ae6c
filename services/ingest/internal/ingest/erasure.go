package ingest

// ReasonErased is all that a receipt says of a delivery whose tenant was erased.
const ReasonErased = "erased"
