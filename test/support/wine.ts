/** Programs of Windows under Wine (Debian: wine64), prepared by `npm run wine`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';
import type { DriverCalls } from './wine/driver.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const WINE = join(process.env['WINE_DIRECTORY'] ?? '/usr/lib/wine', 'wine64');
const SERVER = join(process.env['WINE_DIRECTORY'] ?? '/usr/lib/wine', 'wineserver64');
const PREFIX = join(ROOT, '.wine/prefix');
const NODE = 'C:\\node\\node.exe';
/** Start of Wine and of Node.js in it. Milliseconds. */
const START_MAX_MS = 60_000;

/** Why there is no Wine; undefined where there is one. */
export const wineMissing = (): string | undefined =>
  existsSync(WINE) && existsSync(join(PREFIX, 'drive_c/node/node.exe')) ? undefined : 'no Wine: run npm run wine';

/** The path of a file of this machine, as Windows sees it. */
export const windowsPath = (path: string): string => `Z:${path.replaceAll('/', '\\')}`;
/** The path of a file of Wine's drive C, on this machine. */
export const drivePath = (path: string): string => join(PREFIX, 'drive_c', path);

/** The package with the native part of koffi, as npm packs it. */
export const koffiArchive = (): string => {
  const folder = join(ROOT, '.wine');
  const name = readdirSync(folder).find((each) => each.startsWith('koromix-koffi-win32-x64-')) ?? 'no archive of koffi';
  return join(folder, name);
};

export interface WineResult {
  readonly exitCode: number | null;
  /** Lines end as on Linux. */
  readonly output: string;
}

/**
 * An option of Node.js, with which the program calls `act` in place of a function of Windows. In `act`, `real` is that
 * function, and `refuse(code)` makes it fail with this error.
 */
export const replacing = (name: string, act: string): string => {
  const program = `
    const open = process.dlopen;
    process.dlopen = (module, ...rest) => {
      open(module, ...rest);
      const { load } = module.exports;
      let code;
      const refuse = (error) => { code = error; return null; };
      const replaced = (declaration, real) => {
        if (declaration.includes(' GetLastError(')) {
          return () => { const last = real(); const own = code; code = undefined; return own ?? last; };
        }
        return declaration.includes(' ${name}(') ? (${act}) : real;
      };
      module.exports.load = (library) => {
        const loaded = load(library);
        return { func: (declaration) => replaced(declaration, loaded.func(declaration)) };
      };
    };`;
  return `--import=data:text/javascript,${encodeURIComponent(program)}`;
};

const textOf = (file: string): string => readFileSync(file, 'utf8').replaceAll('\r\n', '\n');

type Result<Name extends keyof DriverCalls> = Awaited<ReturnType<DriverCalls[Name]>>;

export interface Wine {
  /** Runs Node.js with these arguments. */
  node(...args: readonly string[]): Promise<WineResult>;
  /** Starts Node.js with these arguments, and does not wait. */
  start(...args: readonly string[]): { output(): string; kill(): void };
  /** Runs a program of Windows. */
  run(...args: readonly string[]): Promise<WineResult>;
  /** Calls an adapter of this project under Wine. @throws Error of the call */
  call<Name extends keyof DriverCalls>(name: Name, ...args: Parameters<DriverCalls[Name]>): Promise<Result<Name>>;
  stop(): Promise<void>;
}

/** @param programs directory with the build for Windows @param folder for outputs */
export async function startWine(programs: string, folder: string): Promise<Wine> {
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    WINEPREFIX: PREFIX,
    WINEDEBUG: '-all',
    NODEKEEPER_PROGRAM: windowsPath(programs),
  };
  let outputs = 0;
  // A program of Windows cannot write to a pipe of this machine.
  function start(args: readonly string[]): { child: ChildProcess; output: string } {
    outputs += 1;
    const output = join(folder, `output-${outputs}`);
    const file = openSync(output, 'w');
    const child = spawn(WINE, args, { env, cwd: folder, stdio: ['ignore', file, file] });
    closeSync(file);
    return { child, output };
  }
  async function run(...args: readonly string[]): Promise<WineResult> {
    const { child, output } = start(args);
    const exitCode = await new Promise<number | null>((resolve) => child.once('exit', resolve));
    return { exitCode, output: textOf(output) };
  }

  let socket: Socket | undefined;
  const answers: ((line: string) => void)[] = [];
  const server = createServer((connected) => {
    createInterface({ input: connected }).on('line', (line) => answers.shift()?.(line));
    socket = connected;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const driver = start([NODE, windowsPath(join(ROOT, 'test/support/wine/driver.ts')), String(port)]);
  const connected = (): boolean => {
    if (driver.child.exitCode !== null) throw new Error(readFileSync(driver.output, 'utf8'));
    return socket !== undefined;
  };
  await until(connected, { withinMs: START_MAX_MS, everyMs: 50, what: 'the driver under Wine' });

  return {
    node: (...args) => run(NODE, ...args),
    start(...args) {
      const { child, output } = start([NODE, ...args]);
      return { output: () => textOf(output), kill: () => void child.kill('SIGKILL') };
    },
    run,
    async call(name, ...args) {
      const { promise, resolve } = Promise.withResolvers<string>();
      answers.push(resolve);
      socket?.write(`${JSON.stringify({ name, args })}\n`);
      const answer = JSON.parse(await promise);
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer.result;
    },
    async stop() {
      socket?.destroy();
      server.close();
      // Ends every program of this prefix.
      await new Promise((resolve) => spawn(SERVER, ['--kill'], { env, stdio: 'ignore' }).once('exit', resolve));
    },
  };
}
