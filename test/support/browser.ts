/** Debian's Chromium, driven by Playwright: pages of the console as users see them. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';

const PROGRAM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
export const isBrowserInstalled = PROGRAM !== undefined;
export const NO_BROWSER = 'no browser is installed (Debian: chromium)';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** With KEEP_SCREENSHOTS set. Ignored by git. */
const SCREENSHOTS = fileURLToPath(new URL('../../dist/console-screenshots/', import.meta.url));

/** A root user, as in a container, has no sandbox. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: PROGRAM!,
    args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--enable-precise-memory-info'],
  });

export interface OpenedPage {
  readonly page: Page;
  /** Errors of the page: exceptions, and what its policy blocked. */
  readonly errors: readonly string[];
}

export async function openPage(browser: Browser, address: string): Promise<OpenedPage> {
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    // Chromium reports each failed request here. The page shows those itself.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
      errors.push(message.text());
    }
  });
  await page.goto(address);
  return { page, errors };
}

/** The page polls by itself. @throws Error with all that it shows, when it does not show this in time */
export async function seenWithin(page: Page, text: string | RegExp, timeout: number): Promise<void> {
  try {
    await page.getByText(text).first().waitFor({ timeout });
  } catch (cause) {
    const shown = await page.locator('body').innerText();
    throw new Error(`${page.url()} does not show ${text}, only:\n${shown}`, { cause });
  }
}

const ALL_LOOKS = [
  { width: 1_440, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1_440, colorScheme: 'dark' },
  { width: 360, colorScheme: 'light' },
] as const;
const KEEPS_SCREENSHOTS = process.env['KEEP_SCREENSHOTS'] !== undefined;
/** The first two have each width and each scheme once. Contrast does not depend on the width. */
const LOOKS = KEEPS_SCREENSHOTS ? ALL_LOOKS : ALL_LOOKS.slice(0, 2);

/**
 * Looks at the page in both widths and both colour schemes, and returns what is wrong: serious findings of axe, and a
 * page that is wider than its window.
 */
export async function flawsOf(page: Page, story: string): Promise<readonly string[]> {
  const flaws: string[] = [];
  for (const { width, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    // The strips draw themselves again after the next frames.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    const look = `${story}-${width}-${colorScheme}`;
    if (KEEPS_SCREENSHOTS) {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${look}.png`), fullPage: true });
    }
    const pageWidth = (await page.evaluate('document.documentElement.scrollWidth')) as number;
    if (pageWidth > width) flaws.push(`${look}: ${pageWidth} pixels wide`);
    for (const finding of await seriousFindings(page)) flaws.push(`${look}: ${finding}`);
  }
  await page.setViewportSize({ width: 1_440, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });
  return flaws;
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/**
 * Half of the CPU: without the rules that have no serious finding, and without the path of each element in order. The
 * impact of a rule is that of all its findings.
 */
const SERIOUS = `{
  resultTypes: ['violations'],
  selectors: false,
  rules: Object.fromEntries(
    axe._audit.rules
      .filter(({ impact }) => impact === 'minor' || impact === 'moderate')
      .map(({ id }) => [id, { enabled: false }]),
  ),
}`;

async function seriousFindings(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(`${readFileSync(AXE, 'utf8')};undefined`);
  const { violations } = (await page.evaluate(`axe.run(${SERIOUS})`)) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}
