/**
 * The server and the credential of a kubeconfig's current context, as much of it as our commands need: tokens, token
 * files and exec plugins. Kubernetes: "Organizing Cluster Access Using kubeconfig Files".
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { CommandError, type CommandIo } from './command.ts';

export interface ApiAccess {
  readonly url: string;
  /** PEM text; the system's authorities when absent. */
  readonly ca?: string;
  readonly token: string;
}

export interface AccessOptions {
  readonly kubeconfig?: string | undefined;
  /** Instead of the current one. */
  readonly context?: string | undefined;
  readonly server?: string | undefined;
  readonly token?: string | undefined;
  /** Path of a PEM file. */
  readonly 'certificate-authority'?: string | undefined;
}

interface ExecPlugin {
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly apiVersion?: string;
}

interface KubeconfigFile {
  readonly 'current-context'?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: { cluster: string; user: string } }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster: Readonly<Record<string, string>> }[];
  readonly users?: readonly {
    readonly name: string;
    readonly user: { readonly token?: string; readonly tokenFile?: string; readonly exec?: ExecPlugin };
  }[];
}

const EXEC_TIMEOUT_MS = 60_000;
const GIVE = 'give --kubeconfig FILE, or --server URL and --token TOKEN';

type Environment = CommandIo['environment'];

/** The first of $KUBECONFIG: the one kubectl writes to; undefined when the variable names none. */
export const firstKubeconfig = (environment: Environment): string | undefined =>
  environment['KUBECONFIG']?.split(delimiter).find((path) => path !== '');

/** What the options say; the rest from the kubeconfig: the one given, $KUBECONFIG, local mode's, ~/.kube/config. */
export function apiAccess(options: AccessOptions, environment: Environment): ApiAccess {
  const { server, token } = options;
  const caFile = options['certificate-authority'];
  const ca = caFile === undefined ? {} : { ca: readFileSync(caFile, 'utf8') };
  if (server !== undefined && token !== undefined) return { url: server, token, ...ca };
  const path = options.kubeconfig ?? kubeconfigPath(environment);
  if (path === undefined || !existsSync(path))
    throw new CommandError(`no kubeconfig at ${path ?? 'any usual place'}`, GIVE);
  const found = readKubeconfig(path, environment, options);
  return { ...found, ...ca, ...(server === undefined ? {} : { url: server }) };
}

function kubeconfigPath(environment: Environment): string | undefined {
  const home = environment['HOME'];
  const places = [join('.nodekeeper', 'kubeconfig'), ...(home === undefined ? [] : [join(home, '.kube', 'config')])];
  return firstKubeconfig(environment) ?? places.find((place) => existsSync(place));
}

function readKubeconfig(path: string, environment: Environment, { token, context: wanted }: AccessOptions): ApiAccess {
  const file = parse(readFileSync(path, 'utf8')) as KubeconfigFile | null;
  const contextName = wanted ?? file?.['current-context'];
  const context = file?.contexts?.find(({ name }) => name === contextName)?.context;
  if (wanted !== undefined && context === undefined) throw new CommandError(`${path} has no context ${wanted}`, GIVE);
  const cluster = file?.clusters?.find(({ name }) => name === context?.cluster)?.cluster;
  const user = file?.users?.find(({ name }) => name === context?.user)?.user;
  const url = cluster?.['server'];
  if (cluster === undefined || url === undefined) throw new CommandError(`${path} names no server`, GIVE);
  const beside = (name: string): string => readFileSync(resolve(dirname(path), name), 'utf8');
  const data = cluster['certificate-authority-data'];
  const caFile = cluster['certificate-authority'];
  const ca =
    data !== undefined
      ? Buffer.from(data, 'base64').toString('utf8')
      : caFile === undefined
        ? undefined
        : beside(caFile);
  const bearer =
    token ??
    user?.token ??
    (user?.tokenFile === undefined ? undefined : beside(user.tokenFile).trim()) ??
    (user?.exec === undefined ? undefined : fromPlugin(user.exec, environment));
  if (bearer === undefined) throw new CommandError(`${path}: its user signs in without a token`, GIVE);
  return { url, token: bearer, ...(ca === undefined ? {} : { ca }) };
}

function fromPlugin({ command, args, env, apiVersion }: ExecPlugin, environment: Environment): string {
  const more = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  try {
    const output = execFileSync(command, [...(args ?? [])], {
      env: { ...environment, ...more, KUBERNETES_EXEC_INFO: info },
      encoding: 'utf8',
      timeout: EXEC_TIMEOUT_MS,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { status } = JSON.parse(output) as { status?: { token?: unknown } };
    if (typeof status?.token === 'string') return status.token;
  } catch (cause) {
    throw new CommandError(`the kubeconfig's ${command} gave no token`, 'run it by hand to see why', { cause });
  }
  throw new CommandError(`the kubeconfig's ${command} gave no token`, 'run it by hand to see why');
}
