/** What the API answers: every verb, documents, and requests on what is not stored. */
import { METRICS_PATH } from '../../shared/access/authorize.ts';
import { admitByPolicies } from '../../shared/admission/admit-by-policies.ts';
import { SITE_MOVES } from '../../shared/agents/site-move.ts';
import type { Answers, Call, UnstoredRequest } from '../../shared/api/call.ts';
import { readLog } from '../../shared/api/logs/read-log.ts';
import { watch } from '../../shared/api/watch/watch-call.ts';
import { pods } from '../../shared/kinds/registry.ts';
import type { HttpResponse } from '../../shared/kubernetes/http.ts';
import type { ResourceTarget } from '../../shared/kubernetes/request.ts';
import { withJsonBody } from '../../shared/kubernetes/request-body.ts';
import { answerAccessReview } from './access/access-review.ts';
import { reviews } from './access/self-reviews.ts';
import { answerNodeUpdate } from './agents/node-updates.ts';
import { answerChangeRead } from './changes/change-reads.ts';
import { changeReads } from './changes/kind.ts';
import { answerNodeSessions } from './connections/node-sessions.ts';
import { type AdmitConnection, answerConnection, isConnection } from './connections/pod-connection.ts';
import type { ServeDependencies } from './dependencies.ts';
import { remove, removeCollection } from './verbs/delete-calls.ts';
import { get, list } from './verbs/read-calls.ts';
import { getScale, patchScale, updateScale } from './verbs/scale-calls.ts';
import { create, patch, update } from './verbs/write-calls.ts';

/**
 * Paths that load balancers and `kubectl version` read without credentials, as upstream's role
 * system:public-info-viewer.
 */
export const PUBLIC_PATHS: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/version']);

export const apiAnswers = (dependencies: ServeDependencies): Answers => ({
  verbs: {
    get(call) {
      if (call.target.subresource === 'log') return readLog(dependencies, call);
      return isScale(call) ? getScale(dependencies, call) : get(dependencies, call);
    },
    list: (call) => list(dependencies, call),
    create: (call) => create(dependencies, call),
    update: (call) => (isScale(call) ? updateScale(dependencies, call) : update(dependencies, call)),
    patch: (call) => (isScale(call) ? patchScale(dependencies, call) : patch(dependencies, call)),
    delete: (call) => remove(dependencies, call),
    deletecollection: (call) => removeCollection(dependencies, call),
    watch: (call) => watch(dependencies, call),
  },
  publicPath: (path, request) => (PUBLIC_PATHS.has(path) ? dependencies.staticDocument(path, request) : undefined),
  async path(path, request, nowMs) {
    if (path === METRICS_PATH) return dependencies.metrics(request);
    return (await dependencies.answerIssuer?.(path, request, nowMs)) ?? dependencies.staticDocument(path, request);
  },
  unstored: (request) => answerUnstored(dependencies, request),
});

const isScale = ({ target }: Call): boolean => target.subresource === 'scale';

/** undefined: this process does not answer it. */
type AnswerUnstored = (dependencies: ServeDependencies, asked: UnstoredRequest) => Promise<HttpResponse> | undefined;

const keyOf = ({ group, version, resource }: Pick<ResourceTarget, 'group' | 'version' | 'resource'>): string =>
  `${group}/${version}/${resource}`;

/** What no object is stored for. */
const UNSTORED: ReadonlyMap<string, AnswerUnstored> = new Map<string, AnswerUnstored>([
  ...reviews.map((review) => [keyOf(review), answerReview] as const),
  [keyOf(changeReads), answerChangeRead],
  [
    'nodekeeper.dev/v1alpha1/nodelogs',
    ({ nodeLogs }, asked) => {
      if (nodeLogs === undefined) return undefined;
      asked.audit();
      return nodeLogs(asked);
    },
  ],
  [
    'nodekeeper.dev/v1alpha1/nodevolumes',
    (dependencies, asked) => {
      asked.audit();
      return dependencies.nodeVolumes(dependencies, asked);
    },
  ],
  [
    'nodekeeper.dev/v1alpha1/nodesessions',
    ({ nodeSessions }, asked) => nodeSessions && answerNodeSessions(nodeSessions, asked),
  ],
  [keyOf(SITE_MOVES), ({ siteMoves }, asked) => siteMoves(asked)],
  [
    'nodekeeper.dev/v1alpha1/nodeupdates',
    (dependencies, asked) => {
      asked.audit();
      return answerNodeUpdate(dependencies, asked);
    },
  ],
]);

function answerUnstored(dependencies: ServeDependencies, asked: UnstoredRequest) {
  const { target } = asked;
  const answer = UNSTORED.get(keyOf(target));
  if (answer !== undefined) return answer(dependencies, asked);
  return target.subresource !== '' && isConnection(target)
    ? answerConnection(dependencies, asked, admitConnection(dependencies, asked))
    : undefined;
}

const admitConnection =
  (dependencies: ServeDependencies, asked: UnstoredRequest): AdmitConnection =>
  (options, kind) => {
    const call = { ...asked, descriptor: pods, dryRun: false, operation: 'CONNECT' as const };
    const of = { group: '', version: 'v1', kind };
    return admitByPolicies(dependencies, { ...call, kind: of }).admit(options, undefined);
  };

async function answerReview(dependencies: ServeDependencies, asked: UnstoredRequest) {
  await asked.requireAccess();
  const request = await withJsonBody(asked.request, dependencies.readYaml);
  const answer = await dependencies.selfReview({ ...asked, request });
  return answer ?? answerAccessReview(dependencies, asked.target, request, asked.nowMs);
}
