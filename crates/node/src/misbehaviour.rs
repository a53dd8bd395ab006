//! What a peer is expelled for.

wire::reasons! {
    /// What a peer did that none does; it is expelled for it.
    pub enum Misbehaviour {
        /// A message that is none.
        Message = "message",
        /// A chunk frame that is none.
        ChunkFrame = "chunk_frame",
        /// A unit is not what its name says.
        FalseUnit = "false_unit",
        /// It wants more units than it can have on their way.
        Wants = "wants",
        /// A record is not signed by whom it names.
        RecordSignature = "record_signature",
        /// Fields that do not belong into a record.
        Fields = "fields",
        /// A status that is none.
        Status = "status",
        /// A record of a response that none is made of.
        NoRecord = "no_record",
        /// It confirms what nobody has.
        Confirmation = "confirmation",
        /// It tells of another object than was asked for.
        OtherObject = "other_object",
        /// A head that is none.
        Head = "head",
        /// A second head.
        SecondHead = "second_head",
        /// An answer that the object's name does not certify.
        UncertifiedAnswer = "uncertified_answer",
        /// Bytes that nobody gave credit for.
        Credit = "credit",
        /// Bytes that the object's name does not certify.
        UncertifiedBytes = "uncertified_bytes",
        /// Bytes that are out of place, or that nobody gave credit for.
        OutOfPlace = "out_of_place",
        /// A manifest of another length than was announced.
        ManifestLength = "manifest_length",
        /// A manifest that nobody asked for.
        ManifestUnasked = "manifest_unasked",
        /// A segment that is none.
        Segment = "segment",
        /// A segment out of turn.
        SegmentTurn = "segment_turn",
        /// A segment that does not follow the one before.
        SegmentOrder = "segment_order",
        /// A segment that the object's name does not certify.
        UncertifiedSegment = "uncertified_segment",
        /// A segment is not signed by who signed the record.
        SegmentSignature = "segment_signature",
        /// A segment that nobody gave credit for.
        SegmentCredit = "segment_credit",
        /// Units that are not sealed as those of this mesh.
        Sealing = "sealing",
        /// Units that are smaller than any that is cut.
        SmallUnits = "small_units",
    }
}
