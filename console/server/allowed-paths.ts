/**
 * What the console forwards. Everything else is refused, whatever the credential may do: a flaw of the page must not
 * become access to Secrets.
 *
 * Names are those of Kubernetes objects, so no path contains `%`, an empty part or `..`.
 */

const NAME = '[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?';
const NODEKEEPER = '/apis/nodekeeper\\.dev/v1alpha1';

/** A list, and one object of it. */
const readable = (path: string): readonly string[] => [path, `${path}/${NAME}`];

const PATHS: readonly RegExp[] = [
  ...readable('/api/v1/nodes'),
  '/api/v1/pods',
  ...readable(`/api/v1/namespaces/${NAME}/pods`),
  '/api/v1/events',
  ...readable('/apis/coordination\\.k8s\\.io/v1/namespaces/kube-node-lease/leases'),
  '/api/v1/replicationcontrollers',
  '/apis/apps/v1/(?:deployments|statefulsets|daemonsets|replicasets)',
  '/apis/batch/v1/(?:jobs|cronjobs)',
  ...readable(`${NODEKEEPER}/decisions`),
  ...readable(`${NODEKEEPER}/clusterstatuses`),
].map((path) => new RegExp(`^${path}$`));

/** `/metrics` is allowed for the controllers alone: all objects of a large cluster exceed the bound of a response. */
const METRICS = '/metrics?scope=controller';

const LOG = new RegExp(`^/api/v1/namespaces/${NAME}/pods/${NAME}/log$`);
const LOG_PARAMETERS: ReadonlySet<string> = new Set(['container', 'tailLines', 'follow', 'previous']);

const PARAMETERS: ReadonlySet<string> = new Set([
  'watch',
  'resourceVersion',
  'allowWatchBookmarks',
  'timeoutSeconds',
  'limit',
  'continue',
  'fieldSelector',
]);

export interface AllowedRequest {
  /** Path and query for the API. */
  readonly target: string;
  /** A watch, or a log that is followed: its response may last. */
  readonly isHeld: boolean;
}

/**
 * `target`: path and query as the browser sent them, without the prefix of the console.
 * Returns undefined for what is not on the list.
 */
export function allowedRequest(target: string): AllowedRequest | undefined {
  if (target === METRICS) return { target, isHeld: false };
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const isLog = LOG.test(path);
  if (!isLog && !PATHS.some((pattern) => pattern.test(path))) return undefined;
  const parameters = isLog ? LOG_PARAMETERS : PARAMETERS;
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
  const names = [...query.keys()];
  if (names.some((name) => !parameters.has(name)) || new Set(names).size < names.length) return undefined;
  const watch = query.get('watch');
  if (watch !== null && watch !== '1') return undefined;
  return {
    target: names.length === 0 ? path : `${path}?${query}`,
    isHeld: watch === '1' || query.get('follow') === 'true',
  };
}

/** A name of a Kubernetes object. */
export const isObjectName = (text: string): boolean => new RegExp(`^${NAME}$`).test(text);
