/**
 * What an agent requests to learn whether to update itself. A node may use only the path of its own name.
 *
 *   PUT /apis/nodekeeper.dev/v1alpha1/nodeupdates/<node>
 *     request   version (that runs), architecture, failed: { sha256, message } of an update that the node does not
 *               retry
 *     response  action (none, wait, update), reason, waitSeconds (wait), release (update)
 *
 * The request is a report and a question in one, and may be repeated: a node that was granted an update gets the same
 * answer again until it reports the version or a failure. Nodes write no AgentRelease, so a machine can change neither
 * its spec nor the record of another machine.
 *
 * Concurrency: the grant is in the status of the release, and is written on the version that was read. Of two nodes
 * that ask for the last free place, one reads again and waits. A function that is killed after the write has granted
 * the place; the node gets it with its next request.
 *
 * Cost: a node that runs the version is one query and one read. While a release progresses, the nodes are listed at
 * most once per minute for the whole cluster, and each update of a node is two writes of the release. They are listed
 * twice per hour while nothing can change an answer: the release is paused, or waits for nodes that update or failed.
 * What ends the wait is in the release itself (a report, a new spec), or in the Node of such a node (deleted, other
 * labels): these are read once per minute (release-holders.ts).
 */
import { authorize } from '../../../shared/access/authorize.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import {
  type AgentNode,
  type FleetSummary,
  holdersAt,
  isFor,
  isHeldBy,
  type NodeReport,
  needsCounts,
  type ReleaseArtifact,
  type ReleaseSpec,
  type RolloutState,
  STATUS_RESERVE_UNITS,
  summarize,
  type UpdateVerdict,
  updateVerdict,
  waveOf,
  wavesOf,
  withoutObsolete,
  withReport,
} from '../../../shared/agents/release-rollout.ts';
import { defined } from '../../../shared/defined.ts';
import { AGENT_VERSION_ANNOTATION } from '../../../shared/fleet/nodes/agent-version.ts';
import { readyStatusOf } from '../../../shared/fleet/nodes/conditions.ts';
import { agentreleases, nodes } from '../../../shared/kinds/registry.ts';
import type { AgentReleaseCondition, KubeAgentRelease, KubeNode } from '../../../shared/kinds/types.ts';
import { type HttpRequest, type HttpResponse, isStatusError, json } from '../../../shared/kubernetes/http.ts';
import { isJsonObject } from '../../../shared/kubernetes/json.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import { mediaTypeOf, readJson, refuseTooLarge } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { CLIENT_TEXT_MAX } from '../../../shared/store/object-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { modifyObject } from '../verbs/modify-object.ts';
import { HOLDERS_MS, type ReadHolders } from './release-holders.ts';

/** Releases that are considered. A cluster has one per fleet of machines. */
const RELEASES_MAX = 50;
const PAGE_NODES = 500;
/** Nodes that are counted: 200 pages. */
const NODES_MAX = 100_000;
/** The nodes are listed again when the last list is older than this. Milliseconds. */
const REFRESH_MS = 60_000;
/** The same while no count can change the answer. Milliseconds. */
const QUIET_REFRESH_MS = 30 * 60_000;
/** A node asks again after a conflict. Seconds. */
const CONFLICT_WAIT_SECONDS = 60;
const VERSION_CHARACTERS_MAX = 63;
const MESSAGE_CHARACTERS_MAX = 500;

export interface NodeUpdateCall {
  readonly user: UserInfo;
  readonly target: ResourceTarget;
  readonly request: HttpRequest;
  readonly nowMs: number;
}

export interface NodeUpdateDependencies extends ApiDependencies {
  /** The Nodes that a stopped release waits for. */
  readonly readHolders: ReadHolders;
}

/** @throws StatusError 400, 403, 404, 405, 413 */
export async function answerNodeUpdate(
  dependencies: NodeUpdateDependencies,
  call: NodeUpdateCall,
): Promise<HttpResponse> {
  const { target, request } = call;
  refuseOthers(call);
  if (target.name === '' || target.namespace !== '' || target.name.length > NAME_LENGTH_MAX) throw status.unknownPath();
  if (request.method !== 'PUT' || target.subresource !== '') throw status.methodNotAllowedHere();
  const { release, verdict } = await verdictFor(dependencies, reportOf(request), call);
  return json(200, {
    kind: 'NodeUpdateAnswer',
    apiVersion: 'nodekeeper.dev/v1alpha1',
    action: verdict.kind,
    ...(verdict.kind === 'update' ? {} : { reason: verdict.reason }),
    ...(verdict.kind === 'wait' ? { waitSeconds: verdict.waitSeconds } : {}),
    ...(verdict.kind === 'update' ? { release: forAgent(release, verdict.artifact) } : {}),
  });
}

const forAgent = (
  release: KubeAgentRelease | undefined,
  { url, sha256, signature, downgradeSignature, sizeBytes }: ReleaseArtifact,
) => ({
  name: release?.metadata.name ?? '',
  version: release?.spec?.version ?? '',
  url,
  sha256,
  signature,
  ...defined({ downgradeSignature, sizeBytes }),
});

function refuseOthers({ user, target }: NodeUpdateCall): void {
  const access = authorize(user, { ...target, verb: 'update', subresource: '' });
  if (access.allowed) return;
  const { namespace, name, subresource } = target;
  throw status.accessDenied(
    { user: user.username, verb: 'update', target, subresource, namespace, name },
    access.reason,
  );
}

type Reported = Pick<NodeReport, 'version' | 'architecture' | 'failed'>;

function reportOf(request: HttpRequest): Reported {
  if (mediaTypeOf(request.headers) !== 'application/json') throw status.unsupportedMediaType(['application/json']);
  refuseTooLarge(request.body);
  const { version, architecture, failed } = readJson(request.body).value;
  if (!isShortText(version)) throw status.badRequest('version must be a text of 1 to 63 characters');
  if (!isShortText(architecture)) throw status.badRequest('architecture must be a text of 1 to 63 characters');
  return { version, architecture, failed: failureOf(failed) };
}

const isShortText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= VERSION_CHARACTERS_MAX;

function failureOf(failed: unknown): NodeReport['failed'] {
  if (failed === undefined) return undefined;
  if (!isJsonObject(failed)) throw status.badRequest('failed must be an object');
  const { sha256, message = '' } = failed;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) {
    throw status.badRequest('failed.sha256 must be a SHA-256 in lower-case hex');
  }
  if (typeof message !== 'string') throw status.badRequest('failed.message must be a text');
  return { sha256, message: message.slice(0, MESSAGE_CHARACTERS_MAX) };
}

interface Answered {
  readonly release?: KubeAgentRelease;
  readonly verdict: UpdateVerdict;
}

async function verdictFor(
  dependencies: NodeUpdateDependencies,
  reported: Reported,
  { target, nowMs }: NodeUpdateCall,
): Promise<Answered> {
  const releases = await dependencies.storageOf(agentreleases).list({ namespace: '', limit: RELEASES_MAX });
  if (releases.items.length === 0) return { verdict: { kind: 'none', reason: 'there is no release' } };
  const node: KubeNode | undefined = await dependencies.storageOf(nodes).get('', target.name);
  if (node === undefined) return { verdict: { kind: 'none', reason: 'the Node does not exist' } };
  const report: NodeReport = { node: target.name, labels: node.metadata.labels ?? {}, ...reported };
  const active = (releases.items as readonly KubeAgentRelease[]).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );
  const index = active.findIndex((each) => waveOf(specOf(each), report.labels) !== undefined);
  const release = active[index];
  if (release === undefined) return { verdict: { kind: 'none', reason: 'no release is for this node' } };
  const earlier = active.slice(0, index).map(specOf);
  return decideOn(dependencies, { report, name: release.metadata.name ?? '', earlier, nowMs });
}

interface Question {
  readonly report: NodeReport;
  /** The name of the release. */
  readonly name: string;
  /** The releases before it by name. Their nodes are not in this one. */
  readonly earlier: readonly ReleaseSpec[];
  readonly nowMs: number;
}

/** Decides on the current release, and stores what the decision changes. Decides again after a conflict. */
async function decideOn(dependencies: NodeUpdateDependencies, question: Question): Promise<Answered> {
  const { report, name, earlier, nowMs } = question;
  let answered: Answered | undefined;
  const at = formatTime(nowMs);
  const decide = async (release: KubeAgentRelease): Promise<KubeAgentRelease> => {
    const spec = specOf(release);
    const before = stateOf(release);
    const options = { at, listedUnitsMax: listedUnitsMax(release) };
    const state = withReport(before, spec, report, options);
    const completed = before.updating.length - state.updating.length;
    const known = await knownCounts(dependencies, release, { question, state, completed });
    const counted = known ?? (await countNodes(dependencies, { spec, earlier, state, report }));
    const verdict = updateVerdict(spec, report, { ...options, ...counted, state: counted.state ?? state });
    answered = { release, verdict };
    const next = verdict.kind === 'update' ? verdict.state : (counted.state ?? state);
    return withStatus(release, next, { fleet: counted.fleet, countedAt: known === undefined ? at : undefined });
  };
  const path = { ...RELEASE_TARGET, name };
  try {
    await modifyObject(dependencies, agentreleases, path, decide, { nowMs, dryRun: false, replaces: false });
  } catch (error) {
    // Deleted since, or other nodes won every attempt: nothing was granted.
    if (!isStatusError(error) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
    const reason = 'other nodes changed the release at the same time';
    return { verdict: { kind: 'wait', reason, waitSeconds: CONFLICT_WAIT_SECONDS } };
  }
  if (answered === undefined) throw new Error('a release was written without a decision');
  return answered;
}

const RELEASE_TARGET: ResourceTarget = {
  group: agentreleases.group,
  version: agentreleases.version,
  resource: agentreleases.resource,
  namespace: '',
  name: '',
  subresource: 'status',
};

/** A stored release is valid, so the members exist. */
const specOf = ({ spec = {} }: KubeAgentRelease): ReleaseSpec => ({
  version: spec.version ?? '',
  artifacts: (spec.artifacts ?? []) as readonly ReleaseArtifact[],
  waves: spec.waves ?? [],
  maxUnavailable: spec.maxUnavailable ?? 1,
  isPaused: spec.paused === true,
  allowsDowngrade: spec.allowDowngrade === true,
});

const NO_NODES: RolloutState = { updating: [], failed: [] };

const stateOf = ({ status: known = {} }: KubeAgentRelease): RolloutState => ({
  updating: known.updating ?? NO_NODES.updating,
  failed: known.failed ?? NO_NODES.failed,
});

interface Counted {
  readonly fleet: FleetSummary;
  /** Without deleted nodes. Absent: the nodes were not listed. */
  readonly state?: RolloutState;
}

interface Deciding {
  readonly question: Question;
  /** After the report. */
  readonly state: RolloutState;
  /** Updates that the report ended. */
  readonly completed: number;
}

/**
 * The counts of the last list of the nodes. undefined if the nodes must be listed: a place is granted on counts of the
 * last minute only, and a wait that may have ended is decided on such counts. Otherwise one node that waits for a node
 * that failed would cause a list per minute. And a node that reports one version and then another would cause a list
 * each time: the last node to complete its update is no exception, so the last wave ends with the first report of a
 * later minute.
 */
async function knownCounts(
  dependencies: NodeUpdateDependencies,
  release: KubeAgentRelease,
  { question, state, completed }: Deciding,
): Promise<Counted | undefined> {
  const { report, earlier, nowMs } = question;
  const spec = specOf(release);
  const fleet = summaryOf(release, report, completed);
  if (fleet === undefined) return undefined;
  const ageMs = nowMs - (parseTimeMs(release.status?.refreshedAt) ?? 0);
  if (ageMs < REFRESH_MS) return { fleet };
  const mayBeComplete =
    fleet.wave < wavesOf(spec).length &&
    fleet.updated + fleet.skipped >= fleet.nodes &&
    state.updating.length + state.failed.length === 0;
  if (mayBeComplete || ageMs >= QUIET_REFRESH_MS) return undefined;
  if (!needsCounts(spec, report, state)) return { fleet };
  const names = holdersAt(state, Math.floor(nowMs / HOLDERS_MS));
  const holders = (await dependencies.readHolders(names, nowMs)).map((holder) =>
    holder !== undefined && isFor(spec, holder.labels, earlier) ? holder : undefined,
  );
  const view = { state, fleet, listedUnitsMax: listedUnitsMax(release) };
  return isHeldBy(holders, spec, report, view) ? { fleet } : undefined;
}

/** The last counts, with the nodes that completed their update since. undefined if they are those of another spec. */
function summaryOf(
  { metadata, spec = {}, status: known = {} }: KubeAgentRelease,
  report: NodeReport,
  completed: number,
): FleetSummary | undefined {
  const { observedGeneration, nodes: count = 0, updated = 0, skipped = 0, skippedNodes = [], wave = 0 } = known;
  if (observedGeneration !== metadata.generation) return undefined;
  const now = Math.min(count - skipped, updated + completed);
  return { nodes: count, updated: report.version === spec.version ? now : updated, skipped, skippedNodes, wave };
}

interface Counting extends Pick<Question, 'report' | 'earlier'> {
  readonly spec: ReleaseSpec;
  readonly state: RolloutState;
}

/** Lists the nodes. The reporting node counts with the version that it reports: its Node may show an older one. */
async function countNodes(
  { storageOf }: ApiDependencies,
  { spec, earlier, state, report }: Counting,
): Promise<Counted> {
  const fleet: AgentNode[] = [];
  const names = new Set<string>();
  let listed = 0;
  let after: string | undefined;
  do {
    const page = await storageOf(nodes).list({
      namespace: '',
      limit: PAGE_NODES,
      ...defined({ continueAfter: after }),
    });
    listed += page.items.length;
    for (const node of page.items as readonly KubeNode[]) {
      const { name = '', labels = {}, annotations = {} } = node.metadata;
      if (!isFor(spec, labels, earlier)) continue;
      names.add(name);
      const version = name === report.node ? report.version : annotations[AGENT_VERSION_ANNOTATION];
      const known = node.status?.nodeInfo?.['architecture'];
      const architecture = name === report.node ? report.architecture : known;
      // Other nodes run a kubelet, or an agent without updates: no release waits for them.
      if (version === undefined) continue;
      fleet.push({ name, labels, version, architecture, isReady: readyStatusOf(node.status?.conditions) === 'True' });
    }
    after = page.next;
  } while (after !== undefined && listed < NODES_MAX);
  const current = withoutObsolete(state, spec, names);
  return { fleet: summarize(spec, fleet, current), state: current };
}

interface NewCounts {
  readonly fleet: FleetSummary;
  /** Absent: the nodes were not listed. */
  readonly countedAt: string | undefined;
}

const withStatus = (
  release: KubeAgentRelease,
  { updating, failed }: RolloutState,
  { fleet, countedAt }: NewCounts,
): KubeAgentRelease => ({
  ...release,
  status: {
    ...release.status,
    ...fleet,
    skippedNodes: [...fleet.skippedNodes],
    ...(countedAt === undefined
      ? {}
      : {
          observedGeneration: release.metadata.generation ?? 0,
          refreshedAt: countedAt,
          ...defined({ conditions: conditionsOf(release, fleet, countedAt) }),
        }),
    updating: [...updating],
    failed: [...failed],
  },
});

/** Names in the message of a condition. */
const NAMED_NODES_MAX = 5;

/** Whether nodes are skipped. Absent until the first one is. */
function conditionsOf(
  { metadata, status: known = {} }: KubeAgentRelease,
  { skipped, skippedNodes }: FleetSummary,
  at: string,
): AgentReleaseCondition[] | undefined {
  const [before] = known.conditions ?? [];
  if (before === undefined && skipped === 0) return undefined;
  const state = skipped > 0 ? 'True' : 'False';
  const named = skippedNodes.slice(0, NAMED_NODES_MAX).map(({ node, reason }) => `${node} (${reason})`);
  const others = skipped > named.length ? `, and ${skipped - named.length} more` : '';
  return [
    {
      type: 'NodesSkipped',
      status: state,
      observedGeneration: metadata.generation ?? 0,
      lastTransitionTime: before?.status === state ? before.lastTransitionTime : at,
      reason: skipped > 0 ? 'NotInstallable' : 'AllInstallable',
      message: skipped > 0 ? `Nodes that keep their version: ${named.join(', ')}${others}.` : 'No node is skipped.',
    },
  ];
}

/** Length of the listed nodes at most: what the object has left of its own limit. UTF-16 units. */
function listedUnitsMax({ status: known = {}, ...release }: KubeAgentRelease): number {
  const { updating, failed, skippedNodes, conditions, ...counts } = known;
  return CLIENT_TEXT_MAX - JSON.stringify({ ...release, status: counts }).length - STATUS_RESERVE_UNITS;
}
