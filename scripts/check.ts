/** `npm run check`: its programs side by side, as many as there are cores. Each prints its findings when it ends. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Scripts of package.json, the longest first. */
const CHECKS = ['typecheck', 'lint', 'imports', 'reach', 'wording', 'generated'] as const;

const CHECK_MS_MAX = 600_000;

interface Outcome {
  readonly succeeded: boolean;
  readonly output: string;
}

function run(check: (typeof CHECKS)[number]): Promise<Outcome> {
  const child = spawn('npm', ['run', '--silent', check], { stdio: ['ignore', 'pipe', 'pipe'], timeout: CHECK_MS_MAX });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  return new Promise((resolve) => {
    child.once('error', ({ message }) => resolve({ succeeded: false, output: `npm run ${check}: ${message}\n` }));
    child.once('close', (code, signal) => {
      const end = signal === null ? `exit code ${code}` : signal;
      resolve({ succeeded: code === 0, output: code === 0 ? output : `${output}npm run ${check}: ${end}\n` });
    });
  });
}

console.log(`${CHECKS.join(', ')}: ${availableParallelism()} at once`);
const left: (typeof CHECKS)[number][] = [...CHECKS];
async function work(): Promise<void> {
  for (let check = left.shift(); check !== undefined; check = left.shift()) {
    const fromMs = performance.now();
    const { succeeded, output } = await run(check);
    const seconds = Math.round((performance.now() - fromMs) / 1_000);
    process.stdout.write(`${output}${check}: ${succeeded ? 'passed' : 'failed'} after ${seconds} s\n`);
    if (!succeeded) process.exitCode = 1;
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
