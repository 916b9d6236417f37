import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../shared/host/start-error.ts';

export interface SynthesisOptions {
  readonly projectDirectory: string;
  /** Added to the context of cdk.json. */
  readonly context: Readonly<Record<string, unknown>>;
  /** Files that decide about the result besides the sources, such as the policy. */
  readonly inputFiles: readonly string[];
  /** auto: only when no assembly of these very sources is there. */
  readonly mode: 'auto' | 'always' | 'never';
}

export interface Synthesis {
  readonly directory: string;
  readonly kind: 'synthesised' | 'reused';
}

/**
 * Context of the emulation. The domain and the restored tables of a deployment do not exist here. The account has the
 * limit of the options, and the fleet may have any size.
 */
export const emulationContext = (accountConcurrency: number): Readonly<Record<string, string>> => ({
  accountConcurrency: String(accountConcurrency),
  requestsPerSecondMax: '2000',
  domainName: '',
  certificateArn: '',
  restoredTablesFile: '',
  unrecordedSettings: 'allow',
});

/** Where the app and what it bundles live. */
const SOURCES = [
  'cdk/**/*.ts',
  'functions/**/*.ts',
  'shared/**/*.ts',
  'cdk.json',
  'package-lock.json',
  'tsconfig.json',
];
const CACHE = join('.nodekeeper', 'assembly');
/** Assemblies kept besides the one in use: other policies, other branches. */
const KEPT_MAX = 8;
const SYNTH_TIMEOUT_MS = 120_000;
/**
 * esbuild, a Go program that ends with the synthesis, spends a third of its time on garbage. It has none of it
 * collected below a limit: 2.2 instead of 3.5 s, and 1.3 instead of 1.1 GB at most.
 */
const ESBUILD_MEMORY = { GOGC: 'off', GOMEMLIMIT: '1536MiB' };

/**
 * Runs the CDK app without the CLI. Assemblies are kept under the hash of everything that they consist of and never
 * changed afterwards: switching a branch back costs nothing, and two local modes never disturb each other.
 *
 * @throws StartError with the app's own words when it fails
 */
export async function synthesise(options: SynthesisOptions): Promise<Synthesis> {
  const { projectDirectory } = options;
  const configFile = join(projectDirectory, 'cdk.json');
  if (!existsSync(configFile)) throw new StartError(`${configFile} does not exist: this is no CDK project`);
  const config = JSON.parse(readFileSync(configFile, 'utf8')) as { app?: string; context?: object };
  const context = { ...config.context, ...options.context };

  const key = hashOf(projectDirectory, options.inputFiles, context);
  const directory = join(projectDirectory, CACHE, key);
  const fresh = existsSync(join(directory, 'manifest.json'));
  if (options.mode === 'never' && !fresh)
    throw new StartError('no assembly of these sources exists: start without --synth never');
  if (fresh && options.mode !== 'always') {
    utimesSync(directory, new Date(), new Date());
    return { directory, kind: 'reused' };
  }

  const temporary = `${directory}.${randomUUID().slice(0, 8)}`;
  mkdirSync(temporary, { recursive: true });
  try {
    await runApp(config.app ?? '', projectDirectory, temporary, context);
    if (!existsSync(join(temporary, 'manifest.json')))
      throw new StartError(`the CDK app (${config.app}) wrote no assembly`);
    // Bundles ending in .js are CommonJS in Lambda, whatever the project around this folder says.
    writeFileSync(join(temporary, 'package.json'), '{"type":"commonjs"}\n');
    publish(temporary, directory);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  prune(join(projectDirectory, CACHE), key);
  return { directory, kind: 'synthesised' };
}

/** Another start may have published the same sources meanwhile; its result is as good. */
function publish(temporary: string, directory: string): void {
  try {
    renameSync(temporary, directory);
  } catch (error) {
    if (!existsSync(join(directory, 'manifest.json'))) throw error;
    cpSync(temporary, directory, { recursive: true, force: true });
  }
}

function hashOf(projectDirectory: string, inputFiles: readonly string[], context: object): string {
  const hash = createHash('sha256');
  const sources = globSync(SOURCES, { cwd: projectDirectory, exclude: (name) => name.endsWith('.test.ts') }).sort();
  for (const file of [...sources.map((name) => join(projectDirectory, name)), ...inputFiles]) {
    hash.update(file).update('\0').update(contentOf(file)).update('\0');
  }
  return hash.update(JSON.stringify(context)).digest('hex').slice(0, 16);
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new StartError(`${file} cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
}

function runApp(app: string, cwd: string, outputDirectory: string, context: object): Promise<void> {
  const [command = '', ...args] = app.split(' ');
  if (command !== 'node') throw new StartError(`cdk.json: the app must start with "node", not "${command}"`);
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      {
        cwd,
        timeout: SYNTH_TIMEOUT_MS,
        env: {
          ...ESBUILD_MEMORY,
          ...process.env,
          CDK_OUTDIR: outputDirectory,
          CDK_CONTEXT_JSON: JSON.stringify(context),
          // The validator of the CDK and cdk-nag report on the template and do not change it. `npm run synth` runs
          // them.
          CDK_VALIDATION: 'false',
          NODEKEEPER_CDK_NAG: 'false',
        },
      },
      (error, stdout, stderr) => {
        if (error === null) resolve();
        else
          reject(new StartError(`synthesis failed: ${reasonIn(stderr || stdout) || error.message}`, { cause: error }));
      },
    );
  });
}

/** The line that says what went wrong: a stack trace has it behind the source excerpt, bundlers put it first. */
function reasonIn(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('Bundling asset'));
  const at = lines.findIndex((line) => /^(\w*(Error|Fault|Exception)\b.*:|✘ \[ERROR\])/.test(line));
  if (at === -1) return lines.join('; ').slice(0, 500);
  const where = lines.slice(at + 1).find((line) => /^\S+:\d+:\d+:$/.test(line));
  return where === undefined ? (lines[at] ?? '') : `${lines[at]} at ${where.slice(0, -1)}`;
}

function prune(cache: string, inUse: string): void {
  const others = readdirSync(cache, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== inUse)
    .map((entry) => ({ path: join(cache, entry.name), usedMs: usedMs(join(cache, entry.name)) }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { path } of others.slice(KEPT_MAX)) rmSync(path, { recursive: true, force: true });
}

function usedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
