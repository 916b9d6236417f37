/** The content of docs/quality.json. */
export interface PolicyShown {
  readonly name: string;
  readonly graceSeconds: number;
  readonly beatSeconds: number;
  readonly periodSeconds: number;
  /** Differs from another policy only in evictions: marks are those of the other policy. */
  readonly cutOnly: boolean;
}

export interface DetectionFigures {
  readonly cases: number;
  readonly p50Seconds: number;
  readonly p99Seconds: number;
  readonly maxSeconds: number;
  /** Grace and a period. */
  readonly limitSeconds: number;
}

export interface FalseMarkFigures {
  readonly nodeHours: number;
  readonly falseMarks: number;
  readonly perMillionNodeHours: number;
  /** With 95 % confidence no more than this. */
  readonly bound95PerMillionNodeHours: number;
}

export interface CutFigures {
  readonly minutes: number;
  readonly cutNodes: number;
  /** Of the nodes in the zone, which all live. */
  readonly taintedShare: number;
  /** Tainted for so long that their pods were deleted. */
  readonly evictedShare: number;
  readonly othersTouched: number;
  readonly recoveryP50Seconds: number;
  readonly recoveryMaxSeconds: number;
}

export interface Cell {
  readonly policy: string;
  readonly nodes: number;
  readonly detection: DetectionFigures;
  readonly falseMarks: FalseMarkFigures;
  readonly cuts: readonly CutFigures[];
}

export interface QualityFigures {
  readonly command: string;
  readonly policies: readonly PolicyShown[];
  readonly sizes: readonly number[];
  readonly cells: readonly Cell[];
  /** All sizes of a policy together. */
  readonly pooled: readonly (FalseMarkFigures & { readonly policy: string })[];
  /** The same with a path that loses a part of all requests among the faults. */
  readonly lossy: readonly (FalseMarkFigures & { readonly policy: string })[];
  /** Cuts repeated with the controllers over tables in memory. */
  readonly checkedWithControllers: number;
}
