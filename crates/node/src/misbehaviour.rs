//! What a peer is expelled for.

wire::reasons! {
    /// What a peer did to break the protocol. The peer is expelled for it.
    pub enum Misbehaviour {
        /// A message that cannot be decoded.
        Message = "message",
        /// A chunk frame that cannot be decoded.
        ChunkFrame = "chunk_frame",
        /// A unit whose bytes do not match its name.
        FalseUnit = "false_unit",
        /// More wants queued than the protocol allows.
        Wants = "wants",
        /// A record whose signature does not match the signer that it names.
        RecordSignature = "record_signature",
        /// Header fields that no record may contain.
        Fields = "fields",
        /// A number that is not an HTTP status.
        Status = "status",
        /// A status that no record has (1xx, 206, 304).
        NoRecord = "no_record",
        /// A confirmation of a record that the request did not name.
        Confirmation = "confirmation",
        /// A head for another object than the requested one.
        OtherObject = "other_object",
        /// A head that cannot be decoded.
        Head = "head",
        /// A second head, or a record's head for a response that is only passed on.
        SecondHead = "second_head",
        /// An answer that the object's name does not certify.
        UncertifiedAnswer = "uncertified_answer",
        /// Bytes of a response beyond the credit, or at the wrong offset.
        Credit = "credit",
        /// Bytes that the object's name does not certify.
        UncertifiedBytes = "uncertified_bytes",
        /// Bytes of an object at the wrong offset, or beyond the credit.
        OutOfPlace = "out_of_place",
        /// A manifest of another length than was announced.
        ManifestLength = "manifest_length",
        /// A manifest that was not requested.
        ManifestUnasked = "manifest_unasked",
        /// A segment of a manifest that cannot be decoded.
        Segment = "segment",
        /// A segment out of turn.
        SegmentTurn = "segment_turn",
        /// A segment that does not follow the one before.
        SegmentOrder = "segment_order",
        /// A segment that the object's name does not certify.
        UncertifiedSegment = "uncertified_segment",
        /// A segment not signed by the record's signer.
        SegmentSignature = "segment_signature",
        /// A segment beyond the granted credit.
        SegmentCredit = "segment_credit",
        /// Units sealed although the mesh has no key, or unsealed although it has one.
        Sealing = "sealing",
        /// Units smaller than the smallest that is ever cut.
        SmallUnits = "small_units",
    }
}
