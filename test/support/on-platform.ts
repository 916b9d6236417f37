import { onTestFinished } from 'vitest';

/** The rest of this test runs as if on this platform, where `process.platform` decides. */
export function onPlatform(platform: NodeJS.Platform): void {
  const own = process.platform;
  const use = (value: NodeJS.Platform) => Object.defineProperty(process, 'platform', { value });
  use(platform);
  onTestFinished(() => void use(own));
}
