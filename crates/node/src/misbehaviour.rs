//! What a peer is expelled for.

wire::reasons! {
    /// What a peer did that none does; it is expelled for it.
    pub enum Misbehaviour {
        /// A message that cannot be decoded.
        Message = "message",
        /// A chunk frame that cannot be decoded.
        ChunkFrame = "chunk_frame",
        /// A unit is not what its name says.
        FalseUnit = "false_unit",
        /// It wants more units than it can have on their way.
        Wants = "wants",
        /// A record is not signed by whom it names.
        RecordSignature = "record_signature",
        /// Fields that do not belong into a record.
        Fields = "fields",
        /// A number that is not an HTTP status.
        Status = "status",
        /// A record of a response that none is made of.
        NoRecord = "no_record",
        /// A confirmation of a record that the request did not name.
        Confirmation = "confirmation",
        /// It tells of another object than was asked for.
        OtherObject = "other_object",
        /// A head that cannot be decoded.
        Head = "head",
        /// A second head.
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
        /// A segment is not signed by who signed the record.
        SegmentSignature = "segment_signature",
        /// A segment beyond the granted credit.
        SegmentCredit = "segment_credit",
        /// Units that are not sealed as those of this mesh.
        Sealing = "sealing",
        /// Units that are smaller than any that is cut.
        SmallUnits = "small_units",
    }
}
