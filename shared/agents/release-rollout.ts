/**
 * Which node may update its agent now: the rule of AgentReleases (docs/agent.md, "Updates").
 *
 * - A node belongs to the first wave of the release with a selector that matches its labels. Waves run in order.
 * - A wave is complete when each of its Ready nodes runs the version or is skipped. A failed node keeps its wave
 *   incomplete.
 * - A node is skipped if the release has no artifact for its architecture, or if it runs a newer version and the
 *   release allows no downgrade. The status counts skipped nodes and names the first of them.
 * - Nodes that update now and nodes that failed together are at most `maxUnavailable`.
 * - A node that is not Ready does not block its wave. It updates when it is Ready again.
 *
 * The status lists the nodes that update and those that failed, so their number is bounded by the size of an object.
 */
import { isOlderVersion } from './version-order.ts';

/** Most nodes that update or have failed, whatever the release allows: they are listed in its status. */
export const UPDATING_NODES_MAX = 500;
/** Skipped nodes that the status names. The others are counted. */
export const SKIPPED_NODES_LISTED = 20;
/** Failed nodes with a message in the status. The event of a Node has the whole message. */
const MESSAGES_MAX = 50;
/** Length of such a message as JSON. UTF-16 units. */
const MESSAGE_UNITS_MAX = 200;
/**
 * Length of a listed node as JSON, without its name and message: digest, time and the names of the members. UTF-16
 * units.
 */
const LISTED_NODE_UNITS = 130;
/** What a status needs beside the listed nodes at most: messages, skipped nodes, a condition, counts. UTF-16 units. */
export const STATUS_RESERVE_UNITS = 26_000;
/** Shortest and longest time until a waiting node asks again. Seconds. */
const WAIT_SECONDS_MIN = 60;
const WAIT_SECONDS_MAX = 1_800;
/** Nodes that are read to learn whether a release still waits for them. */
const HOLDERS_READ_MAX = 10;

export interface ReleaseArtifact {
  /** `amd64`, `arm64`, …; absent: every architecture without an artifact of its own. */
  readonly architecture?: string;
  readonly url: string;
  /** Lower-case hex. */
  readonly sha256: string;
  /** Ed25519, base64. */
  readonly signature: string;
  /** Ed25519, base64. Absent: no node with a newer version installs it. */
  readonly downgradeSignature?: string;
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
  /** Whether nodes with a newer version install this one. */
  readonly allowsDowngrade: boolean;
}

/** A Node with an agent that updates itself. */
export interface AgentNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** That the agent reports. */
  readonly version: string;
  /** Undefined until the node reports it. */
  readonly architecture: string | undefined;
  readonly isReady: boolean;
}

export interface UpdatingNode {
  readonly node: string;
  /** The digest of the artifact that the node was granted. */
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

export interface SkippedNode {
  readonly node: string;
  readonly reason: string;
}

/** What the nodes looked like when they were last listed. */
export interface FleetSummary {
  /** Nodes of the release. */
  readonly nodes: number;
  /** Those of the nodes that run the version. */
  readonly updated: number;
  /** Those of the nodes that do not install it. */
  readonly skipped: number;
  /** The first of the skipped nodes. */
  readonly skippedNodes: readonly SkippedNode[];
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
  const skippedNodes: SkippedNode[] = [];
  let nodes = 0;
  let updated = 0;
  let skipped = 0;
  for (const node of fleet) {
    const { name, labels, version, isReady } = node;
    const wave = waveOf(spec, labels);
    if (wave === undefined) continue;
    nodes += 1;
    if (version === spec.version) updated += 1;
    const reason = skipReason(spec, node);
    if (reason !== undefined) {
      skipped += 1;
      if (skippedNodes.length < SKIPPED_NODES_LISTED) skippedNodes.push({ node: name, reason: shortMessage(reason) });
    }
    const waits = version !== spec.version && isReady && reason === undefined;
    if (busy.has(name) || waits) incomplete.add(wave);
  }
  const first = waves.findIndex((_, index) => incomplete.has(index));
  return { nodes, updated, skipped, skippedNodes, wave: first < 0 ? waves.length : first };
}

/** Why a node does not install the release; undefined if it does, or runs it already. */
function skipReason(
  spec: ReleaseSpec,
  { version, architecture }: Pick<AgentNode, 'version' | 'architecture'>,
): string | undefined {
  if (version === spec.version) return undefined;
  if (architecture !== undefined && artifactFor(spec, architecture) === undefined) {
    return `no artifact for ${architecture}`;
  }
  return isOlderVersion(spec.version, version) && !spec.allowsDowngrade
    ? `runs the newer version ${version}, and allowDowngrade is not set`
    : undefined;
}

/**
 * Without nodes that were deleted or are no longer in the release, and without artifacts that the release no longer
 * has.
 */
export function withoutObsolete(state: RolloutState, spec: ReleaseSpec, names: ReadonlySet<string>): RolloutState {
  const digests = new Set(spec.artifacts.map(({ sha256 }) => sha256));
  return {
    // A node that updates to an artifact of an earlier release still is unavailable.
    updating: state.updating.filter(({ node }) => names.has(node)),
    failed: state.failed.filter(({ node, sha256 }) => names.has(node) && digests.has(sha256)),
  };
}

export interface ReportOptions {
  /** RFC 3339. */
  readonly at: string;
  /** Length of the listed nodes as JSON at most. UTF-16 units. */
  readonly listedUnitsMax: number;
}

/** Whether one more node can be listed. A node keeps its place when it fails: both lists count alike. */
function hasRoom({ updating, failed }: RolloutState, node: string, listedUnitsMax: number): boolean {
  if (updating.length + failed.length >= UPDATING_NODES_MAX) return false;
  const units = (name: string): number => name.length + LISTED_NODE_UNITS;
  return [...updating, ...failed].reduce((sum, each) => sum + units(each.node), units(node)) <= listedUnitsMax;
}

/** The text as one line, cut at MESSAGE_UNITS_MAX units of its JSON. */
function shortMessage(message: string): string {
  const line = message.replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, ' ').trim();
  if (JSON.stringify(line).length <= MESSAGE_UNITS_MAX) return line;
  let short = line.slice(0, MESSAGE_UNITS_MAX);
  while (JSON.stringify(short).length >= MESSAGE_UNITS_MAX) short = short.slice(0, -1);
  // Half of a surrogate pair is no character.
  return `${short.replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** The first failures have a message, and each of them is short. */
const withShortMessages = (failed: readonly FailedNode[]): readonly FailedNode[] =>
  failed.map((each, index) => ({ ...each, message: index < MESSAGES_MAX ? shortMessage(each.message) : '' }));

/** The state after the report of a node: an update that completed or failed no longer counts as updating. */
export function withReport(
  state: RolloutState,
  spec: ReleaseSpec,
  report: NodeReport,
  { at, listedUnitsMax }: ReportOptions,
): RolloutState {
  const { node, version, failed } = report;
  const others = {
    updating: state.updating.filter((each) => each.node !== node),
    failed: state.failed.filter((each) => each.node !== node),
  };
  if (version === spec.version) return unlessEqual(others, state);
  const isOfRelease = spec.artifacts.some(({ sha256 }) => sha256 === failed?.sha256);
  if (failed !== undefined && isOfRelease) {
    if (state.failed.some((each) => each.node === node && each.sha256 === failed.sha256)) return state;
    // A node that was never granted may not be listed: it does not install the artifact either way.
    if (!hasRoom(others, node, listedUnitsMax) && !state.updating.some((each) => each.node === node)) return state;
    return { ...others, failed: withShortMessages([...others.failed, { node, ...failed, at }]) };
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

/** What the cluster knows when a node asks. `state` is that after the report of this node (`withReport`). */
export interface RolloutView {
  readonly state: RolloutState;
  readonly fleet: FleetSummary;
}

export function updateVerdict(
  spec: ReleaseSpec,
  report: NodeReport,
  { state, fleet, at, listedUnitsMax }: ReportOptions & RolloutView,
): UpdateVerdict {
  const reason = refusalOf(spec, report, state);
  if (reason !== undefined) return { kind: 'none', reason };
  const artifact = artifactFor(spec, report.architecture);
  if (artifact === undefined) return { kind: 'none', reason: `no artifact for ${report.architecture}` };
  const remaining = fleet.nodes - fleet.updated - fleet.skipped;
  const wait = (reason: string): UpdateVerdict => ({
    kind: 'wait',
    reason,
    // All waiting nodes together ask about once per second.
    waitSeconds: Math.min(WAIT_SECONDS_MAX, Math.max(WAIT_SECONDS_MIN, remaining)),
  });
  if (spec.isPaused) return wait('the release is paused');
  if (isUpdating(report, state)) return { kind: 'update', artifact, state };
  if (waveIndex(spec, report.labels) > fleet.wave) return wait('an earlier wave is not complete');
  const full = noPlaceReason(spec, report, { state, fleet, listedUnitsMax });
  if (full !== undefined) return wait(full);
  const claim = { node: report.node, sha256: artifact.sha256, since: at };
  return { kind: 'update', artifact, state: { ...state, updating: [...state.updating, claim] } };
}

/** Why the node does not install the release, whatever other nodes do; undefined if it may. */
function refusalOf(spec: ReleaseSpec, report: NodeReport, state: RolloutState): string | undefined {
  if (waveOf(spec, report.labels) === undefined) return 'the node is in no wave';
  if (report.version === spec.version) return 'the node runs this version';
  const reason = skipReason(spec, report);
  if (reason !== undefined) return reason;
  const { node, failed } = report;
  const isOfRelease = failed !== undefined && failed.sha256 === artifactFor(spec, report.architecture)?.sha256;
  const isFailed = isOfRelease || state.failed.some((each) => each.node === node);
  return isFailed ? 'the update failed on this node' : undefined;
}

const isUpdating = ({ node }: Pick<NodeReport, 'node'>, { updating }: RolloutState): boolean =>
  updating.some((each) => each.node === node);

/** Infinity for a node in no wave. */
const waveIndex = (spec: ReleaseSpec, labels: Readonly<Record<string, string>>): number =>
  waveOf(spec, labels) ?? Number.POSITIVE_INFINITY;

/** Why no further node can update now; undefined if one can. */
function noPlaceReason(
  spec: ReleaseSpec,
  { node }: Pick<NodeReport, 'node'>,
  { state, fleet, listedUnitsMax }: RolloutView & Pick<ReportOptions, 'listedUnitsMax'>,
): string | undefined {
  const unavailable = state.updating.length + state.failed.length;
  const max = unavailableMax(spec, fleet.nodes);
  if (unavailable >= max) return `${unavailable} nodes update or have failed, maxUnavailable is ${max}`;
  return hasRoom(state, node, listedUnitsMax) ? undefined : 'the status of the release can list no further node';
}

/** Whether the answer depends on the counts of the nodes. */
export const needsCounts = (spec: ReleaseSpec, report: NodeReport, state: RolloutState): boolean =>
  refusalOf(spec, report, state) === undefined && !spec.isPaused && !isUpdating(report, state);

/**
 * Some of the nodes that update or failed. Their Nodes are read to learn whether the release still waits for them
 * (`isHeldBy`). Others follow in the next slot, so each deleted Node is found.
 */
export function holdersAt({ updating, failed }: RolloutState, slot: number): readonly string[] {
  const all = [...updating, ...failed].map(({ node }) => node);
  const first = all.length === 0 ? 0 : (slot * HOLDERS_READ_MAX) % all.length;
  return [...all.slice(first), ...all.slice(0, first)].slice(0, HOLDERS_READ_MAX);
}

/** A node of the release that updates or has failed. */
export interface Holder {
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined: it counts in no wave, as it no longer reports one. */
  readonly version: string | undefined;
}

/**
 * Whether a node waits for certain, with counts that may be old: no place is free, or a holder is in an earlier wave,
 * which is then not complete. Counts on which that wave is complete are older than the holder: they are no reason to
 * wait. undefined is a holder without a Node, or one that left the release: a list of the nodes then ends its part in
 * the release.
 */
export function isHeldBy(
  holders: readonly (Holder | undefined)[],
  spec: ReleaseSpec,
  report: NodeReport,
  view: RolloutView & Pick<ReportOptions, 'listedUnitsMax'>,
): boolean {
  if (holders.length === 0 || holders.includes(undefined)) return false;
  const wave = waveIndex(spec, report.labels);
  const isEarlier = (holder: Holder | undefined): boolean =>
    holder?.version !== undefined && waveIndex(spec, holder.labels) < wave;
  const isBehind = wave > view.fleet.wave && holders.some(isEarlier);
  return isBehind || noPlaceReason(spec, report, view) !== undefined;
}
