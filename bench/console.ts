/**
 * The page of the console in Chromium, over a stand-in for the API: time to the first paint and to all nodes, time of
 * the main thread per update, heap, and the size of the page.
 */
import type { CDPSession, Page } from 'playwright-core';
import { buildPageFiles } from '../console/server/page-files.ts';
import { serveConsole } from '../console/server/serve-console.ts';
import { isBrowserInstalled, NO_BROWSER, openPage, startBrowser } from '../test/support/browser.ts';
import { type StandInApi, startStandInApi } from '../test/support/stand-in-api.ts';
import { type Benchmark, percentile, type Report, rounded } from './benchmark.ts';

const FLEET_SIZES = [100, 1_000, 5_000];
const UPDATES = 20;
/** Longer than the page collects changes for. */
const UPDATE_PERIOD_MS = 500;
const SHOWN_MS_MAX = 60_000;

export const consolePage: Benchmark = {
  name: 'console',
  about: 'the page of the console in Chromium: first paint, update cost, heap, bytes',
  run: measureConsole,
};

async function measureConsole(report: Report): Promise<void> {
  if (!isBrowserInstalled) throw new Error(NO_BROWSER);
  const files = [...(await buildPageFiles())];
  report({
    what: 'size of the page, gzip',
    bytes: files.reduce((sum, [, { bytes }]) => sum + bytes.length, 0),
    ...Object.fromEntries(files.map(([path, { bytes }]) => [path, bytes.length])),
  });
  const browser = await startBrowser();
  try {
    for (const nodes of FLEET_SIZES) {
      const api = await startStandInApi(nodes);
      const running = await serveConsole({
        access: { url: api.url, token: 'token' },
        renewAccess: () => ({ url: api.url, token: 'token' }),
        port: 0,
        cluster: 'bench',
        explain: async () => [],
        advise: async () => ({ limitPer1000NodeDays: 1, profiles: [] }),
      });
      // The page is built by its first request, and that is not measured.
      await fetch(new URL('/', running.address));
      try {
        const startedMs = performance.now();
        const { page } = await openPage(browser, running.address);
        await page.getByText(`${nodes} of ${nodes}`).waitFor({ timeout: SHOWN_MS_MAX });
        const shownMs = performance.now() - startedMs;
        report({ what: 'page', nodes, ...(await measurePage(page, api)), allNodesShownMs: rounded(shownMs, 3) });
        await page.close();
      } finally {
        await running.stop();
        await api.stop();
      }
    }
  } finally {
    await browser.close();
  }
}

async function measurePage(page: Page, api: StandInApi) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  // Time that the thread ran. On a machine with other load, a task lasts longer than that.
  const running = await page.context().newCDPSession(page);
  await running.send('Performance.enable', { timeDomain: 'threadTicks' });
  const firstPaintMs = await numberFrom(page, `performance.getEntriesByName('first-contentful-paint')[0].startTime`);
  const loadedHeapBytes = await numberFrom(page, 'performance.memory.usedJSHeapSize');
  const updates: number[] = [];
  const cpu: number[] = [];
  for (let update = 0; update < UPDATES; update += 1) {
    const before = await busySeconds(session);
    const cpuBefore = await busySeconds(running);
    api.setReady(update, 'Unknown');
    await page.waitForTimeout(UPDATE_PERIOD_MS);
    updates.push((await busySeconds(session)) - before);
    cpu.push((await busySeconds(running)) - cpuBefore);
  }
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN;
  return {
    firstPaintMs: rounded(firstPaintMs, 3),
    // Of the whole period: with the clock of the page, its polls and the paint.
    updateBusyP50Ms: rounded(1_000 * percentile(updates, 0.5), 3),
    updateBusyMaxMs: rounded(1_000 * Math.max(...updates), 3),
    updateCpuP50Ms: rounded(1_000 * percentile(cpu, 0.5), 3),
    updateCpuMaxMs: rounded(1_000 * Math.max(...cpu), 3),
    heapAfterLoadMegabytes: rounded(loadedHeapBytes / 1e6, 3),
    heapAfterCollectionMegabytes: rounded(heap / 1e6, 3),
  };
}

const numberFrom = async (page: Page, expression: string): Promise<number> => Number(await page.evaluate(expression));

/** Time of the main thread in tasks so far. Seconds. */
async function busySeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
}
