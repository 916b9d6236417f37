/** What `nodekeeper-agent install` writes on Windows: the texts of its files, and the command line of the service. */

export const SERVICE_NAME = 'nodekeeper-agent';
/** Pods have this long when the machine shuts down, critical ones the last part of it. Seconds. */
const SHUTDOWN_SECONDS = 40;
const SHUTDOWN_CRITICAL_SECONDS = 10;
/** Windows waits longer than pods have: for the last status, events and the state file. Milliseconds. */
const SHUTDOWN_EXTRA_MS = 10_000;

export const SHUTDOWN_TIMEOUT_MS = SHUTDOWN_SECONDS * 1_000 + SHUTDOWN_EXTRA_MS;

export interface InstallPaths {
  /** Node.js. */
  readonly node: string;
  /** Program files of the agent. */
  readonly program: string;
  /** Configuration, key, pods. */
  readonly data: string;
}

export const configFileOf = ({ data }: InstallPaths): string => `${data}\\agent.yaml`;
export const environmentFileOf = ({ data }: InstallPaths): string => `${data}\\agent.env`;
export const logFileOf = ({ data }: InstallPaths): string => `${data}\\agent.log`;
export const tokenFileOf = ({ data }: InstallPaths): string => `${data}\\bootstrap-token`;
export const updateKeyFileOf = ({ data }: InstallPaths): string => `${data}\\update-key.pem`;
export const authorityFileOf = ({ data }: InstallPaths): string => `${data}\\ca.pem`;

/** The agent waits most of its time: small memory is worth more to it than fast code. */
const NODE_FLAGS = ['--lite-mode', '--max-semi-space-size=1'];

/** Quotes around what may have spaces: a path ends at its first space otherwise. */
export const serviceCommandLine = (paths: InstallPaths): string =>
  [
    `"${paths.node}"`,
    ...NODE_FLAGS,
    `"--env-file=${environmentFileOf(paths)}"`,
    `"${paths.program}\\start-agent.mjs"`,
    '--config',
    `"${configFileOf(paths)}"`,
  ].join(' ');

/** Values are in single quotes: a backslash has no meaning there. */
export const environmentText = (paths: InstallPaths): string =>
  [
    '# Variables of the service nodekeeper-agent, such as HTTPS_PROXY.',
    `STATE_DIRECTORY='${paths.data}'`,
    `NODEKEEPER_PROGRAM='${paths.program}'`,
    `NODEKEEPER_LOG_FILE='${logFileOf(paths)}'`,
    '',
  ].join('\r\n');

export interface InstallSettings {
  readonly endpoint: string;
  readonly clusterId: string | undefined;
  readonly nodeName: string | undefined;
  readonly runtime: string;
  readonly hasAuthority: boolean;
  readonly hasUpdateKey: boolean;
}

/** JSON texts are YAML texts. */
const field = (name: string, value: string | undefined): string[] =>
  value === undefined ? [] : [`${name}: ${JSON.stringify(value)}`];

export const configText = (paths: InstallPaths, settings: InstallSettings): string =>
  [
    'apiVersion: nodekeeper.dev/v1alpha1',
    'kind: AgentConfiguration',
    ...field('endpoint', settings.endpoint),
    ...field('certificateAuthorityFile', settings.hasAuthority ? authorityFileOf(paths) : undefined),
    ...field('bootstrapTokenFile', tokenFileOf(paths)),
    ...field('clusterId', settings.clusterId),
    ...field('hostnameOverride', settings.nodeName),
    ...field('updatePublicKeyFile', settings.hasUpdateKey ? updateKeyFileOf(paths) : undefined),
    ...field('runtime', settings.runtime),
    ...field('rootDirectory', paths.data),
    '---',
    'apiVersion: kubelet.config.k8s.io/v1beta1',
    'kind: KubeletConfiguration',
    `shutdownGracePeriod: ${SHUTDOWN_SECONDS}s`,
    `shutdownGracePeriodCriticalPods: ${SHUTDOWN_CRITICAL_SECONDS}s`,
    '',
  ].join('\r\n');

/**
 * The order of services without the agent, and without dependencies that it has added.
 *
 * @param before the order at the installation; undefined: there was none
 * @returns undefined: there is none any more
 */
export function orderWithout(
  service: string,
  dependencies: readonly string[],
  current: readonly string[],
  before: readonly string[] | undefined,
): readonly string[] | undefined {
  const same = (one: string) => (other: string) => one.toLowerCase() === other.toLowerCase();
  const left = current.filter((name) => {
    if (same(name)(service)) return false;
    return !dependencies.some(same(name)) || (before ?? []).some(same(name));
  });
  return left.length === 0 && before === undefined ? undefined : left;
}
