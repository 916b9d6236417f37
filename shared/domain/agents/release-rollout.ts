/**
 * Which node may update its agent now: the rule of AgentReleases (docs/agent.md, "Updates").
 *
 * - A node belongs to the first wave of the release with a selector that matches its labels. Waves run in order.
 * - A wave is complete when each of its Ready nodes runs the version. A failed node keeps its wave incomplete.
 * - Nodes that update now and nodes that failed together are at most `maxUnavailable`.
 * - A node that is not Ready does not block its wave. It updates when it is Ready again.
 */

/** Most nodes that update at the same time, whatever the release allows: they are listed in its status. */
export const UPDATING_NODES_MAX = 500;
/** Shortest and longest time until a waiting node asks again. Seconds. */
const WAIT_SECONDS_MIN = 60;
const WAIT_SECONDS_MAX = 1_800;

export interface ReleaseArtifact {
  /** `amd64`, `arm64`, …; absent: every architecture without an artifact of its own. */
  readonly architecture?: string;
  readonly url: string;
  /** Lower-case hex. */
  readonly sha256: string;
  /** Ed25519, base64. */
  readonly signature: string;
  readonly sizeBytes?: number;
}

export interface ReleaseWave {
  readonly name?: string;
  /** Absent or empty: every node. */
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

export interface ReleaseSpec {
  readonly version: string;
  readonly artifacts: readonly ReleaseArtifact[];
  /** Empty: one wave of all nodes. */
  readonly waves: readonly ReleaseWave[];
  /** A count, or a share of the nodes such as `10%`, rounded up. */
  readonly maxUnavailable: number | string;
  readonly isPaused: boolean;
}

/** A Node with an agent that updates itself. */
export interface AgentNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** That the agent reports. */
  readonly version: string;
  readonly isReady: boolean;
}

export interface UpdatingNode {
  readonly node: string;
  /** Of the artifact that the node was granted. */
  readonly sha256: string;
  /** RFC 3339. */
  readonly since: string;
}

export interface FailedNode {
  readonly node: string;
  readonly sha256: string;
  readonly message: string;
  /** RFC 3339. */
  readonly at: string;
}

/** What the nodes looked like when they were last listed. */
export interface FleetSummary {
  /** Nodes of the release. */
  readonly nodes: number;
  /** Of them, those that run the version. */
  readonly updated: number;
  /** Index of the first wave that is not complete; the number of waves when all are. */
  readonly wave: number;
}

export interface RolloutState {
  readonly updating: readonly UpdatingNode[];
  readonly failed: readonly FailedNode[];
}

/** What a node reports about its agent. */
export interface NodeReport {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The version that runs. */
  readonly version: string;
  readonly architecture: string;
  /** An artifact that this node does not try again. */
  readonly failed: { readonly sha256: string; readonly message: string } | undefined;
}

const ALL_NODES: readonly ReleaseWave[] = [{}];

export const wavesOf = ({ waves }: Pick<ReleaseSpec, 'waves'>): readonly ReleaseWave[] =>
  waves.length === 0 ? ALL_NODES : waves;

/** Index of the wave of a node with these labels; undefined if the release is not for it. */
export function waveOf(spec: Pick<ReleaseSpec, 'waves'>, labels: Readonly<Record<string, string>>): number | undefined {
  const index = wavesOf(spec).findIndex(({ nodeSelector = {} }) =>
    Object.entries(nodeSelector).every(([key, value]) => labels[key] === value),
  );
  return index < 0 ? undefined : index;
}

/** Whether the release is for a node with these labels: it is the first, by name, with a wave for it. */
export const isFor = (
  spec: Pick<ReleaseSpec, 'waves'>,
  labels: Readonly<Record<string, string>>,
  earlier: readonly Pick<ReleaseSpec, 'waves'>[],
): boolean => waveOf(spec, labels) !== undefined && earlier.every((each) => waveOf(each, labels) === undefined);

/** The artifact for an architecture: its own, or the one for all. */
export const artifactFor = ({ artifacts }: Pick<ReleaseSpec, 'artifacts'>, architecture: string) =>
  artifacts.find((each) => each.architecture === architecture) ??
  artifacts.find((each) => (each.architecture ?? '') === '');

/** Nodes that may update or have failed at the same time, at least one. */
export function unavailableMax({ maxUnavailable }: Pick<ReleaseSpec, 'maxUnavailable'>, nodes: number): number {
  const share = /^(\d+)%$/.exec(String(maxUnavailable));
  const count = share === null ? Number(maxUnavailable) : Math.ceil((Number(share[1]) * nodes) / 100);
  return Math.min(UPDATING_NODES_MAX, Math.max(1, count));
}

export function summarize(spec: ReleaseSpec, fleet: readonly AgentNode[], state: RolloutState): FleetSummary {
  const busy = new Set([...state.updating, ...state.failed].map(({ node }) => node));
  const waves = wavesOf(spec);
  const incomplete = new Set<number>();
  let nodes = 0;
  let updated = 0;
  for (const { name, labels, version, isReady } of fleet) {
    const wave = waveOf(spec, labels);
    if (wave === undefined) continue;
    nodes += 1;
    if (version === spec.version) updated += 1;
    if (busy.has(name) || (version !== spec.version && isReady)) incomplete.add(wave);
  }
  const first = waves.findIndex((_, index) => incomplete.has(index));
  return { nodes, updated, wave: first < 0 ? waves.length : first };
}

/** Without nodes that were deleted or are no longer in the release, and without artifacts that the release no longer has. */
export function withoutObsolete(state: RolloutState, spec: ReleaseSpec, names: ReadonlySet<string>): RolloutState {
  const digests = new Set(spec.artifacts.map(({ sha256 }) => sha256));
  return {
    // A node that updates to an artifact of an earlier release still is unavailable.
    updating: state.updating.filter(({ node }) => names.has(node)),
    failed: state.failed.filter(({ node, sha256 }) => names.has(node) && digests.has(sha256)),
  };
}

/** The state after the report of a node: an update that completed or failed no longer counts as updating. */
export function withReport(state: RolloutState, spec: ReleaseSpec, report: NodeReport, at: string): RolloutState {
  const { node, version, failed } = report;
  const others = {
    updating: state.updating.filter((each) => each.node !== node),
    failed: state.failed.filter((each) => each.node !== node),
  };
  if (version === spec.version) return unlessEqual(others, state);
  const isOfRelease = spec.artifacts.some(({ sha256 }) => sha256 === failed?.sha256);
  if (failed !== undefined && isOfRelease) {
    if (state.failed.some((each) => each.node === node && each.sha256 === failed.sha256)) return state;
    return { ...others, failed: [...others.failed, { node, ...failed, at }] };
  }
  // It runs another version, so it does not update to an artifact that the release no longer has.
  const claim = state.updating.find((each) => each.node === node);
  const isCurrent = spec.artifacts.some(({ sha256 }) => sha256 === claim?.sha256) && !spec.isPaused;
  return unlessEqual({ ...others, updating: isCurrent ? state.updating : others.updating }, state);
}

/** `state` itself if nothing was removed: nothing is then written. */
const unlessEqual = (next: RolloutState, state: RolloutState): RolloutState =>
  next.updating.length === state.updating.length && next.failed.length === state.failed.length ? state : next;

export type UpdateVerdict =
  /** Runs the version already, or the release is not for this node. */
  | { readonly kind: 'none'; readonly reason: string }
  | { readonly kind: 'wait'; readonly reason: string; readonly waitSeconds: number }
  | { readonly kind: 'update'; readonly artifact: ReleaseArtifact; readonly state: RolloutState };

/** @param state after the report of this node (`withReport`) */
export function updateVerdict(
  spec: ReleaseSpec,
  report: NodeReport,
  { state, fleet, at }: { readonly state: RolloutState; readonly fleet: FleetSummary; readonly at: string },
): UpdateVerdict {
  const wave = waveOf(spec, report.labels);
  if (wave === undefined) return { kind: 'none', reason: 'the node is in no wave' };
  if (report.version === spec.version) return { kind: 'none', reason: 'the node runs this version' };
  const artifact = artifactFor(spec, report.architecture);
  if (artifact === undefined) return { kind: 'none', reason: `no artifact for ${report.architecture}` };
  if (report.failed?.sha256 === artifact.sha256 || state.failed.some(({ node }) => node === report.node)) {
    return { kind: 'none', reason: 'the update failed on this node' };
  }
  const remaining = fleet.nodes - fleet.updated;
  const wait = (reason: string): UpdateVerdict => ({
    kind: 'wait',
    reason,
    // All waiting nodes together ask about once per second.
    waitSeconds: Math.min(WAIT_SECONDS_MAX, Math.max(WAIT_SECONDS_MIN, remaining)),
  });
  if (spec.isPaused) return wait('the release is paused');
  if (state.updating.some(({ node }) => node === report.node)) return { kind: 'update', artifact, state };
  if (wave > fleet.wave) return wait('an earlier wave is not complete');
  const unavailable = state.updating.length + state.failed.length;
  const max = unavailableMax(spec, fleet.nodes);
  if (unavailable >= max) return wait(`${unavailable} nodes update or have failed, maxUnavailable is ${max}`);
  const claim = { node: report.node, sha256: artifact.sha256, since: at };
  return { kind: 'update', artifact, state: { ...state, updating: [...state.updating, claim] } };
}
