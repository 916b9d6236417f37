/**
 * Server and credential of a kubeconfig context. Supported credentials: tokens, token files and exec plugins.
 * Kubernetes: "Organizing Cluster Access Using kubeconfig Files".
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { type Document, LineCounter, parseDocument } from 'yaml';
import { defined } from '../shared/defined.ts';
import { CommandError, type CommandIo } from './command.ts';

export interface ApiAccess {
  readonly url: string;
  /** PEM text. Absent: the certificate authorities of the system. */
  readonly ca?: string;
  readonly token: string;
  /** Where url and token come from. Absent: from the options. */
  readonly kubeconfig?: {
    readonly path: string;
    readonly context: string;
    readonly execArgs: readonly string[];
  };
}

export interface AccessOptions {
  readonly kubeconfig?: string | undefined;
  /** Absent: the current context. */
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
const NEXT = 'pass --kubeconfig FILE, or --server URL and --token TOKEN';

type Environment = CommandIo['environment'];

/** The first file of $KUBECONFIG, which kubectl writes to. undefined: the variable names none. */
export const firstKubeconfig = (environment: Environment): string | undefined =>
  environment['KUBECONFIG']?.split(delimiter).find((path) => path !== '');

/**
 * Access by the options, completed from a kubeconfig: --kubeconfig, $KUBECONFIG, that of local mode, ~/.kube/config.
 *
 * @throws CommandError
 */
export function apiAccess(options: AccessOptions, environment: Environment): ApiAccess {
  const { server, token } = options;
  const caFile = options['certificate-authority'];
  const ca = defined({ ca: caFile === undefined ? undefined : textOfFile(caFile) });
  if (server !== undefined) requireUrl(server, '--server');
  if (server !== undefined && token !== undefined) return { url: server, token, ...ca };
  const path = options.kubeconfig ?? kubeconfigPath(environment);
  if (path === undefined || !existsSync(path))
    throw new CommandError(path === undefined ? 'no kubeconfig was found' : `no kubeconfig at ${path}`, NEXT);
  const found = readKubeconfig(path, environment, options);
  if (server === undefined) requireUrl(found.url, `the server in ${path}`);
  return { ...found, ...ca, ...defined({ url: server }) };
}

function requireUrl(text: string, what: string): void {
  const url = URL.parse(text);
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return;
  throw new CommandError(`${what} must be a URL such as https://nodes.example.com, not ${JSON.stringify(text)}`, NEXT);
}

function textOfFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandError(`${path} cannot be read: ${(cause as Error).message}`, NEXT, { cause });
  }
}

function kubeconfigPath(environment: Environment): string | undefined {
  const home = environment['HOME'];
  const places = [join('.nodekeeper', 'kubeconfig'), ...(home === undefined ? [] : [join(home, '.kube', 'config')])];
  return firstKubeconfig(environment) ?? places.find((place) => existsSync(place));
}

/** @throws CommandError with the line of what is no YAML, or with the list that is none */
function parsedKubeconfig(path: string): KubeconfigFile | undefined {
  const lines = new LineCounter();
  const document = parseDocument(textOfFile(path), { lineCounter: lines, prettyErrors: false });
  const [fault] = document.errors;
  if (fault !== undefined) {
    throw new CommandError(`${path}:${lines.linePos(fault.pos[0]).line}: ${fault.message}`, NEXT, { cause: fault });
  }
  const file = (contentOf(document, path) ?? undefined) as KubeconfigFile | undefined;
  for (const name of ['contexts', 'clusters', 'users'] as const) {
    const entries: unknown = file?.[name] ?? [];
    if (!Array.isArray(entries) || entries.some((each) => typeof each !== 'object' || each === null)) {
      throw new CommandError(`${path}: ${name} must be a list of mappings`, NEXT);
    }
  }
  return file;
}

/** An alias without an anchor is no fault of the document. */
function contentOf(document: Document.Parsed, path: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    throw new CommandError(`${path}: ${(cause as Error).message}`, NEXT, { cause });
  }
}

function readKubeconfig(
  path: string,
  environment: Environment,
  { token, context: requested }: AccessOptions,
): ApiAccess {
  const file = parsedKubeconfig(path);
  const contextName = requested ?? file?.['current-context'];
  const context = file?.contexts?.find(({ name }) => name === contextName)?.context;
  if (requested !== undefined && context === undefined)
    throw new CommandError(`${path} has no context ${requested}`, NEXT);
  const cluster = file?.clusters?.find(({ name }) => name === context?.cluster)?.cluster;
  const user = file?.users?.find(({ name }) => name === context?.user)?.user;
  const url = cluster?.['server'];
  if (cluster === undefined || url === undefined) throw new CommandError(`${path} has no server`, NEXT);
  const beside = (name: string): string => textOfFile(resolve(dirname(path), name));
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
  if (bearer === undefined) throw new CommandError(`the user in ${path} has no token, tokenFile or exec plugin`, NEXT);
  return {
    url,
    token: bearer,
    kubeconfig: { path, context: contextName ?? '', execArgs: user?.exec?.args ?? [] },
    ...defined({ ca }),
  };
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
    throw new CommandError(
      `${command}, the exec plugin of the kubeconfig, returned no token`,
      'run it by hand to see why',
      { cause },
    );
  }
  throw new CommandError(
    `${command}, the exec plugin of the kubeconfig, returned no token`,
    'run it by hand to see why',
  );
}
