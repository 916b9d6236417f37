/** Boots systemd in namespaces of its own, and runs a story in it. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
export const BOOT_MS = 240_000;

/** Mounts an overlay over the root in new namespaces, with a group of cgroup v2: what boot.sh needs. */
const PROBE = `
mount --make-rprivate / && base=$(mktemp -d) && mount -t tmpfs tmpfs "$base" && mkdir "$base/u" "$base/w" "$base/r" &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/u,workdir=$base/w" "$base/r" && mount -t proc proc "$base/r/proc" &&
mount -t cgroup2 cgroup2 "$base/r/mnt" && ip link add a0 type veth peer name a1 && test -x /lib/systemd/systemd &&
test -x /lib/systemd/systemd-logind && command -v dbus-daemon && rmdir "$base" 2>/dev/null; test -d "$base/r/proc/1"`;

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const namespaces = ['--mount', '--pid', '--fork', '--net', '--cgroup'];
  const { status, stderr } = spawnSync('unshare', [...namespaces, 'sh', '-c', PROBE], { encoding: 'utf8' });
  return status === 0 ? undefined : stderr.trim().slice(0, 200) || 'a program is missing';
}

/** Undefined: a boot is possible here. */
export const missing = whyNot();
/** For the name of a suite. */
export const why = missing === undefined ? '' : ` (skipped: systemd cannot be booted: ${missing})`;

/** @throws Error with the report of a story that failed */
export async function boot(story: string, directory: string): Promise<void> {
  const results = join(directory, 'results');
  const args = [join(HERE, 'boot.sh'), PROJECT, join(directory, 'dist'), results, story];
  await promisify(execFile)('sh', args, { timeout: BOOT_MS, killSignal: 'SIGKILL' });
  const failed = join(results, 'failed');
  if (existsSync(failed)) throw new Error(readFileSync(failed, 'utf8'));
}

/** What a step of the story found; {} when it never ran. */
export function resultsOf<T>(directory: string, step: string): T {
  const path = join(directory, 'results', `${step}.json`);
  return (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}) as T;
}
