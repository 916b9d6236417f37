/** Opens the built site in Chromium, without a network but loopback. */
import type { Page } from 'playwright-core';
import { isBrowserInstalled, NO_BROWSER, openPage, startBrowser } from '../../test/support/browser.ts';
import { until } from '../../test/support/until.ts';

const NARROW_PIXELS = 390;
const WAIT = { timeout: 20_000 };
/** For what a key opens. */
const KEY_WAIT = { timeout: 1_000 };
/** What a reader may look for, and the title of the page that is to be found. */
const SEARCHES = [
  ['planned silence', 'Planned silence'],
  ['offline-stop-after', 'The agent'],
] as const;
const PAGES = ['', 'docs/', 'docs/agent.html', 'docs/operations/alarms/', 'docs/security.html'];

/** @returns one line of what was seen. @throws Error with everything that is wrong */
export async function checkInBrowser(address: string): Promise<string> {
  if (!isBrowserInstalled) throw new Error(NO_BROWSER);
  const browser = await startBrowser();
  try {
    const faults: string[] = [];
    const { page, errors } = await openPage(browser, address);
    page.on('request', (request) => {
      if (new URL(request.url()).hostname !== '127.0.0.1') faults.push(`${request.url()} was requested`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400) faults.push(`${response.url()}: ${response.status()}`);
    });
    for (const path of PAGES) {
      await page.goto(address + path);
      await page.locator('main h1').first().waitFor(WAIT);
      faults.push(...(await looksOf(page, path)));
    }
    await page.goto(address);
    for (const [words, title] of SEARCHES) await search(page, words, title);
    faults.push(...errors);
    if (faults.length > 0) throw new Error(`the site in Chromium:\n${faults.join('\n')}`);
    return `site: ${PAGES.length} pages and ${SEARCHES.length} searches in Chromium, ${browser.version()}`;
  } finally {
    await browser.close();
  }
}

/** Both colour schemes differ, and a phone needs no scrolling to the side. */
async function looksOf(page: Page, path: string): Promise<string[]> {
  const backgrounds: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.reload();
    await page.locator('main h1').first().waitFor(WAIT);
    backgrounds.push((await page.evaluate('getComputedStyle(document.body).backgroundColor')) as string);
  }
  await page.setViewportSize({ width: NARROW_PIXELS, height: 800 });
  const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number;
  await page.setViewportSize({ width: 1_440, height: 900 });
  return [
    ...(backgrounds[0] === backgrounds[1] ? [`${path}: ${backgrounds[0]} in both colour schemes`] : []),
    ...(wide > NARROW_PIXELS ? [`${path}: ${wide} pixels wide on a phone`] : []),
  ];
}

/** Types the words as a reader, with the network cut once the search is open, and follows the first result. */
async function search(page: Page, words: string, title: string): Promise<void> {
  const field = page.locator('#localsearch-input');
  // The page is shown before its script receives keys.
  await until(
    async () => {
      await page.keyboard.press('Control+k');
      await field.waitFor(KEY_WAIT);
      return true;
    },
    { withinMs: WAIT.timeout, what: 'an open search' },
  );
  await field.fill(words.slice(0, 1));
  await page.locator('#localsearch-list li').first().waitFor(WAIT);
  await page.context().setOffline(true);
  await field.fill(words);
  await page.locator('#localsearch-list li', { hasText: title }).first().waitFor(WAIT);
  await page.context().setOffline(false);
  await page.locator('#localsearch-list li', { hasText: title }).first().click();
  await page.locator('main h1', { hasText: title }).waitFor(WAIT);
}
