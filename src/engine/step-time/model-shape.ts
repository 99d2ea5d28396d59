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
  /** Bytes of a weight of the attention where only the feed-forward blocks are quantised; weightBytes when left out. */
  readonly attentionWeightBytes?: number;
  /** Bytes of a number in the KV cache; bytesPerParameter when left out. */
  readonly kvBytes?: number;
  /** Weights of 8 bits or less are multiplied as such, where the board can, not widened first. */
  readonly narrowMultiply?: boolean;
  /** Matrices of the feed-forward block: 2, or 3 with a gate. */
  readonly mlpMatrices: number;
  /** Of a mixture of experts; left out for a dense model. */
  readonly experts?: ExpertShape;
  /** Layers of a mixture that have a plain feed-forward block in place of experts. */
  readonly denseLayers?: { readonly count: number; readonly intermediate: number };
  /** Attention over a compressed state (MLA), in place of keys and values by heads. */
  readonly latent?: LatentShape;
  /** Layers whose attention goes back so many tokens at most. */
  readonly window?: { readonly layers: number; readonly tokens: number };
}

export interface ExpertShape {
  readonly count: number;
  /** Experts that one token uses. */
  readonly perToken: number;
  /** Width of what every token uses beside them, of all shared experts together; 0 when left out. */
  readonly sharedIntermediate?: number;
}

/** Sizes as DeepSeek's configurations name them: q_lora_rank (0 for none), kv_lora_rank, and the parts of a head. */
export interface LatentShape {
  readonly queryRank: number;
  readonly keyRank: number;
  readonly plainSize: number;
  readonly rotarySize: number;
  readonly valueSize: number;
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

/** Weights of one layer's attention. */
export function attentionParameters(model: ModelShape): number {
  const { hidden, heads, kvHeads, latent } = model;
  if (latent === undefined) return 2 * hidden * headSizeOf(model) * (heads + kvHeads);
  const { queryRank, keyRank, plainSize, rotarySize, valueSize } = latent;
  const query = heads * (plainSize + rotarySize);
  const queries = queryRank > 0 ? queryRank * (hidden + query) : hidden * query;
  return (
    queries + hidden * (keyRank + rotarySize) + keyRank * heads * (plainSize + valueSize) + heads * valueSize * hidden
  );
}

/** Bytes of attention weights of one layer. */
export function attentionBytes(model: ModelShape): number {
  return attentionParameters(model) * (model.attentionWeightBytes ?? model.weightBytes ?? model.bytesPerParameter);
}

/** Weights of a feed-forward block so wide. */
export function feedForwardParameters(model: ModelShape, width: number): number {
  return model.mlpMatrices * model.hidden * width;
}

/** Layers that have experts; none of a dense model. */
export function expertLayers(model: ModelShape): number {
  return model.experts === undefined ? 0 : model.layers - (model.denseLayers?.count ?? 0);
}

/** Numbers that one layer's cache keeps of a token, on one of so many boards. Too few heads for all are repeated. */
export function kvNumbersPerLayer(model: ModelShape, boards: number): number {
  if (model.latent !== undefined) return model.latent.keyRank + model.latent.rotarySize;
  return 2 * Math.ceil(model.kvHeads / boards) * headSizeOf(model);
}

/** Bytes that the cache keeps of a token, on one of so many boards. */
export function kvBytesPerToken(model: ModelShape, boards: number): number {
  return model.layers * kvNumbersPerLayer(model, boards) * (model.kvBytes ?? model.bytesPerParameter);
}

/** Bytes of all layers' weights: attention, feed-forward blocks, experts. */
export function layerBytes(model: ModelShape): number {
  const bytes = model.weightBytes ?? model.bytesPerParameter;
  const mixed = expertLayers(model);
  const dense =
    (model.layers - mixed) * feedForwardParameters(model, model.denseLayers?.intermediate ?? model.intermediate);
  const { count = 0, sharedIntermediate = 0 } = model.experts ?? {};
  const experts = mixed * feedForwardParameters(model, model.intermediate * count + sharedIntermediate);
  return model.layers * attentionBytes(model) + (dense + experts) * bytes;
}
