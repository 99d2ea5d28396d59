/** Shape of a dense or mixture-of-experts transformer. */
export interface ModelShape {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** hidden / heads when left out. */
  readonly headSize?: number;
  /** Width of the feed-forward block, of one expert where there are experts. */
  readonly intermediate: number;
  readonly bytesPerParameter: number;
  /** Bytes of a weight where weights are quantised; bytesPerParameter when left out. */
  readonly weightBytes?: number;
  /** Matrices of the feed-forward block: 2, or 3 with a gate. */
  readonly mlpMatrices: number;
  /** Of a mixture of experts; left out for a dense model. */
  readonly experts?: ExpertShape;
}

export interface ExpertShape {
  readonly count: number;
  /** Experts that one token uses. */
  readonly perToken: number;
  /** Width of what every token uses beside them, of all shared experts together; 0 when left out. */
  readonly sharedIntermediate?: number;
}

export interface HardwareShape {
  /** Dense peak at the width of the activations. */
  readonly tflopsPeak: number;
  /** Terabytes per second. */
  readonly bandwidthTbs: number;
  /** Fractions of the peak that prefill and decode reach. */
  readonly mfuPrefill: number;
  readonly mfuDecode: number;
}

/** Numbers in a head's keys; hidden / heads where the model does not state it. */
export function headSizeOf(model: ModelShape): number {
  return model.headSize ?? model.hidden / model.heads;
}
