/**
 * Adds a cluster to a kubeconfig. Everything else stays the same, comments included.
 * Kubernetes: "Organizing Cluster Access Using kubeconfig Files"; "client-go credential plugins".
 */
import { closeSync, lstatSync, openSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Document, isMap, isSeq, parseDocument, type YAMLMap, YAMLSeq } from 'yaml';
import { makeDirectory } from '../shared/host/directory.ts';
import { PRIVATE_DIRECTORY } from '../shared/host/write-file.ts';
import { CommandError } from './command.ts';

export interface KubeconfigEntry {
  /** Name of the cluster and of the user. */
  readonly name: string;
  /** Name of the context, which becomes the current one. */
  readonly contextName: string;
  readonly server: string;
  readonly exec: {
    readonly command: string;
    readonly args: readonly string[];
  };
}

const EXEC_VERSION = 'client.authentication.k8s.io/v1';
const INSTALL_HINT = 'Nodekeeper was moved or removed: run `npx nodekeeper kubeconfig` again.';

/** @throws CommandError when the text is not a kubeconfig */
export function mergedKubeconfig(text: string, { name, contextName, server, exec }: KubeconfigEntry): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw notKubeconfig(document.errors[0]?.message ?? '');
  const config = document.contents === null ? new Document({ apiVersion: 'v1', kind: 'Config' }) : document;
  const top = config.contents;
  if (!isMap(top)) throw notKubeconfig('it is not a mapping');
  const kind = config.get('kind');
  if (kind !== undefined && kind !== 'Config') throw notKubeconfig(`it is of kind ${String(kind)}`);
  config.set('apiVersion', 'v1');
  config.set('kind', 'Config');
  setEntry(config, 'clusters', { name, cluster: { server } });
  setEntry(config, 'users', {
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
  setEntry(config, 'contexts', { name: contextName, context: { cluster: name, user: name } });
  config.set('current-context', contextName);
  return config.toString({ lineWidth: 0 });
}

/** Replaces the entry of that name, or appends it. */
function setEntry(
  config: Document,
  list: string,
  entry: { readonly name: string; readonly [part: string]: unknown },
): void {
  let entries = config.get(list);
  // kubectl writes `null` where there are none.
  if (!isSeq(entries) && entries !== undefined && entries !== null) throw notKubeconfig(`${list} is not a list`);
  if (!isSeq(entries)) {
    entries = new YAMLSeq(config.schema);
    config.set(list, entries);
  }
  const items = entries as YAMLSeq;
  // Without this, a list written as [] would stay on one line.
  if (items.items.length === 0) items.flow = false;
  const at = items.items.findIndex((item) => isMap(item) && (item as YAMLMap).get('name') === entry.name);
  const node = config.createNode(entry);
  if (at === -1) items.add(node);
  else items.items[at] = node;
}

const notKubeconfig = (why: string): CommandError =>
  new CommandError(
    `this is not a kubeconfig: ${why}`,
    'pass another file with --file, or --file - to print the result',
  );

/**
 * Changes a file atomically, under the lock file of kubectl, with mode 0600. A symbolic link is followed.
 *
 * @throws CommandError when another process holds the lock, or the file cannot be written
 */
export function changeKubeconfigFile(path: string, change: (text: string) => string): void {
  makeDirectory(dirname(path), PRIVATE_DIRECTORY);
  const target = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? realpathSync(path) : path;
  const lock = `${target}.lock`;
  try {
    closeSync(openSync(lock, 'wx', 0o600));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(target, cause);
    throw new CommandError(`${lock} exists`, 'another process may be changing the file; remove the lock if none is', {
      cause,
    });
  }
  const temporary = `${target}.${process.pid}.new`;
  try {
    const text = readIfPresent(target);
    writeFileSync(temporary, change(text), { mode: 0o600, flag: 'wx' });
    renameSync(temporary, target);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw cause instanceof CommandError ? cause : unwritable(target, cause);
  } finally {
    rmSync(lock, { force: true });
  }
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw cause;
  }
}

const unwritable = (path: string, cause: unknown): CommandError =>
  new CommandError(`${path} cannot be changed: ${(cause as Error).message}`, 'pass another file with --file', {
    cause,
  });
