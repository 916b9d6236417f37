/**
 * nodekeeper console
 *
 * Serves a page about the cluster on loopback, with the credential of the current kubeconfig (docs/console.md). Nothing
 * is deployed. The command runs until it is interrupted.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type ConsoleAccess, ConsoleError } from '../console/server/console-access.ts';
import { type Console, serveConsole } from '../console/server/serve-console.ts';
import type { AdviceReport } from '../shared/fleet/silences/advise-grace.ts';
import { sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { type AccessOptions, apiAccess } from './kubeconfig.ts';

export const CONSOLE_USAGE = [
  'nodekeeper console [--port N] [--open]',
  '  with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

const PORT_MAX = 65_535;

/** Resolves when the user ends the command. */
type WaitForEnd = () => Promise<void>;

export async function consoleCommand(
  args: readonly string[],
  io: CommandIo,
  waitForEnd: WaitForEnd = untilInterrupted,
): Promise<void> {
  const { port, open = false, ...values } = parse(args);
  const running = await openConsole({ port: portOf(port), values, environment: io.environment });
  io.print(`The console is at ${running.address}`);
  io.print('Ctrl-C stops it. The address contains a secret: it permits what your kubeconfig permits.');
  const closeBrowser = open ? openBrowser(running.address) : () => {};
  await waitForEnd();
  closeBrowser();
  await running.stop();
}

/** The console with the credential that the options choose. @throws CommandError */
export async function openConsole(options: {
  /** 0: any free one. */
  readonly port: number;
  readonly values: AccessOptions;
  readonly environment: CommandIo['environment'];
}): Promise<Console> {
  const { port, values, environment } = options;
  const readAccess = () => apiAccess(values, environment);
  const access = readAccess();
  try {
    return await serveConsole({
      access,
      renewAccess: readAccess,
      port,
      cluster: access.kubeconfig?.context ?? new URL(access.url).host,
      explain: (subject, current) => explanation(subject, current, environment),
      advise: adviceFor,
    });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new CommandError(`port ${port} is in use`, 'choose another with --port, or 0 for any free one', { cause });
    }
    throw cause;
  }
}

/** The lines of `nodekeeper explain`, with a credential that was read before: an exec plugin would block the page. */
async function explanation(
  subject: readonly string[],
  access: ConsoleAccess,
  environment: CommandIo['environment'],
): Promise<readonly string[]> {
  // Loaded when it is used: it contains the rules of all controllers, and local mode starts with this file.
  const { explainCommand } = await import('./explain.ts');
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  // A token may begin with a hyphen, as an option does.
  const args = [...subject, `--server=${access.url}`, `--token=${access.token}`];
  try {
    await explainCommand(args, { environment, nowMs: Date.now(), print }, (_, request) => sendToApi(access, request));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    lines.push(error.message);
  }
  return lines;
}

/** What `nodekeeper advise --json` prints. @throws ConsoleError 502 with the message of the API */
async function adviceFor(access: ConsoleAccess): Promise<AdviceReport> {
  const { readAdvice } = await import('./advise.ts');
  try {
    return await readAdvice((request) => sendToApi(access, request));
  } catch (cause) {
    if (!(cause instanceof CommandError)) throw cause;
    throw new ConsoleError(502, cause.message, { cause });
  }
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      open: { type: 'boolean' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  }).values;

function portOf(text = '0'): number {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= PORT_MAX)) throw new CommandError(`--port must be a number from 0 to ${PORT_MAX}`, CONSOLE_USAGE);
  return port;
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: 'open', linux: 'xdg-open' };

/**
 * Opens the address in the browser, through a file that only the user can read: other users of the machine can list the
 * arguments of its processes. Returns what removes the file.
 */
function openBrowser(address: string): () => void {
  const opener = OPENERS[process.platform];
  if (opener === undefined) throw new CommandError('--open is not supported on this system', 'open the address');
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-console-'));
  const file = join(folder, 'open.html');
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${address}">`, { mode: 0o600 });
  spawn(opener, [file], { stdio: 'ignore', detached: true })
    .on('error', () => console.error(`${basename(opener)} could not be started: open the address yourself`))
    .unref();
  return () => rmSync(folder, { recursive: true, force: true });
}

const untilInterrupted: WaitForEnd = () =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
