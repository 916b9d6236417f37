/**
 * One more cluster in a kubeconfig, everything else in it left as it was, comments included.
 * Kubernetes: "Organizing Cluster Access Using kubeconfig Files"; "client-go credential plugins".
 */
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Document, isMap, isSeq, parseDocument, type YAMLMap, YAMLSeq } from 'yaml';
import { CommandError } from './command.ts';

export interface KubeconfigEntry {
  /** Of the cluster and the user. */
  readonly name: string;
  /** Of the context, which becomes the current one. */
  readonly contextName: string;
  readonly server: string;
  readonly exec: {
    readonly command: string;
    readonly args: readonly string[];
  };
}

const EXEC_VERSION = 'client.authentication.k8s.io/v1';
const INSTALL_HINT = 'Nodekeeper is no longer where it was: run `npx nodekeeper kubeconfig` once more.';

/** @throws CommandError when the text is no kubeconfig */
export function mergedKubeconfig(text: string, { name, contextName, server, exec }: KubeconfigEntry): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw notOne(document.errors[0]?.message ?? '');
  const config = document.contents === null ? new Document({ apiVersion: 'v1', kind: 'Config' }) : document;
  const top = config.contents;
  if (!isMap(top)) throw notOne('it is no mapping');
  const kind = config.get('kind');
  if (kind !== undefined && kind !== 'Config') throw notOne(`it is of kind ${String(kind)}`);
  config.set('apiVersion', 'v1');
  config.set('kind', 'Config');
  put(config, 'clusters', { name, cluster: { server } });
  put(config, 'users', {
    name,
    user: {
      exec: {
        apiVersion: EXEC_VERSION,
        command: exec.command,
        args: [...exec.args],
        interactiveMode: 'Never',
        provideClusterInfo: false,
        installHint: INSTALL_HINT,
      },
    },
  });
  put(config, 'contexts', { name: contextName, context: { cluster: name, user: name } });
  config.set('current-context', contextName);
  return config.toString({ lineWidth: 0 });
}

/** In place of the entry of that name, else at the end. */
function put(config: Document, list: string, entry: { readonly name: string; readonly [part: string]: unknown }): void {
  let entries = config.get(list);
  // kubectl writes `null` where there are none.
  if (!isSeq(entries) && entries !== undefined && entries !== null) throw notOne(`${list} is no list`);
  if (!isSeq(entries)) {
    entries = new YAMLSeq(config.schema);
    config.set(list, entries);
  }
  const items = entries as YAMLSeq;
  // A list written as [] would keep to one line for ever.
  if (items.items.length === 0) items.flow = false;
  const at = items.items.findIndex((item) => isMap(item) && (item as YAMLMap).get('name') === entry.name);
  const node = config.createNode(entry);
  if (at === -1) items.add(node);
  else items.items[at] = node;
}

const notOne = (why: string): CommandError =>
  new CommandError(`this is no kubeconfig: ${why}`, 'give another with --file, or - to print it');

/**
 * Changes a file under kubectl's own lock, whole at any time, for its owner alone. A link is followed.
 *
 * @throws CommandError when somebody else holds the lock
 */
export function changeKubeconfigFile(path: string, change: (text: string) => string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const target = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? realpathSync(path) : path;
  const lock = `${target}.lock`;
  try {
    closeSync(openSync(lock, 'wx', 0o600));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(target, cause);
    throw new CommandError(`${lock} exists`, 'is kubectl changing the file? Remove the lock if nobody is', { cause });
  }
  const temporary = `${target}.${process.pid}.new`;
  try {
    const text = readIfThere(target);
    writeFileSync(temporary, change(text), { mode: 0o600, flag: 'wx' });
    renameSync(temporary, target);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw cause instanceof CommandError ? cause : unwritable(target, cause);
  } finally {
    rmSync(lock, { force: true });
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw cause;
  }
}

const unwritable = (path: string, cause: unknown): CommandError =>
  new CommandError(`${path} cannot be changed: ${(cause as Error).message}`, 'give another with --file', { cause });
