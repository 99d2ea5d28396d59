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
  /** Experts, and experts per token; left out for a dense model. */
  readonly experts?: { readonly count: number; readonly perToken: number };
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

export function headSizeOf(model: ModelShape): number {
  return model.headSize ?? model.hidden / model.heads;
}
