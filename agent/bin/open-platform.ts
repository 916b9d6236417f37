import type { Platform, PlatformOptions } from './platform.ts';

/** Loads the parts of this operating system alone. */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  if (process.platform === 'win32') return (await import('./windows-platform.ts')).openWindows(options);
  return (await import('./linux-platform.ts')).openLinux(options);
}
