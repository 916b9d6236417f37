/**
 * The page of the console in Chromium, over a stand-in for the API. Work of the page is CPU time of the main thread of
 * its renderer: what else this machine does has less effect on it than on time by the clock.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { buildPageFiles } from '../console/server/page-files.ts';
import { serveConsole } from '../console/server/serve-console.ts';
import { isBrowserInstalled, NO_BROWSER, openPage, startBrowser } from '../test/support/browser.ts';
import { type StandInApi, startStandInApi } from '../test/support/stand-in-api.ts';
import { type Benchmark, percentile, readOptions, rounded, wholeNumber, wholeNumbers } from './benchmark.ts';
import { type PageFigures, pageTable } from './page-table.ts';
import { mainThreadUpdates, type TraceEvent } from './page-trace.ts';

const WAIT = { timeout: 120_000 };
const MB = 1_048_576;
/** After a change of view, until its work is done. */
const SETTLED_MS = 3_000;

export const page: Benchmark = {
  name: 'page',
  about: 'the page of the console in Chromium: first paint, work of an update, memory, size',
  usage: '[--nodes 500,5000] [--pods 20000] [--seconds 20] [--rate 2]',
  smallest: ['--nodes', '10', '--pods', '10', '--seconds', '1'],
  onlyByName: true,
  async run(report, words) {
    const options = readOptions(words, {
      nodes: { type: 'string' },
      pods: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
    });
    const counts = wholeNumbers('nodes', options.nodes, { least: 1, most: 20_000, otherwise: [500, 5_000] });
    const pods = wholeNumber('pods', options.pods, { least: 0, most: 30_000, otherwise: 20_000 });
    const seconds = wholeNumber('seconds', options.seconds, { least: 1, most: 600, otherwise: 20 });
    const changesPerSecond = wholeNumber('rate', options.rate, { least: 1, most: 100, otherwise: 2 });
    if (!isBrowserInstalled) throw new Error(NO_BROWSER);
    const browser = await startBrowser();
    const measured: PageFigures[] = [];
    try {
      for (const nodes of counts) {
        const figures = await measure(browser, { nodes, pods, seconds, changesPerSecond });
        measured.push(figures);
        report({ ...figures });
      }
    } finally {
      await browser.close();
    }
    const files = [...(await buildPageFiles()).values()];
    report({ gzipKilobytes: rounded(files.reduce((sum, { bytes }) => sum + bytes.length, 0) / 1_000, 3) });
    console.error(`\n${pageTable(measured)}\n`);
  },
};

interface Asked {
  readonly nodes: number;
  readonly pods: number;
  readonly seconds: number;
  readonly changesPerSecond: number;
}

async function measure(browser: Browser, asked: Asked): Promise<PageFigures> {
  const api = await startStandInApi(asked.nodes, { pods: asked.pods });
  const access = { url: api.url, token: 'token' };
  const running = await serveConsole({
    access,
    renewAccess: () => access,
    port: 0,
    cluster: 'bench',
    explain: async () => [],
    advise: async () => ({ limitPer1000NodeDays: 1, profiles: [] }),
  });
  try {
    // The server builds the page for its first reader, who is not measured.
    await (await openPage(browser, running.address)).page.close();
    const { page: opened } = await openPage(browser, running.address);
    await opened.getByText(`${asked.nodes} of ${asked.nodes}`).first().waitFor(WAIT);
    const shownMs = (await opened.evaluate('performance.now()')) as number;
    const paintMs = (await opened.evaluate(
      "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN",
    )) as number;
    await opened.evaluate("location.hash = '#/pods'");
    await opened.getByText(`${asked.pods} pod`).first().waitFor(WAIT);
    const updates: number[] = [];
    const perSecond: Record<string, number> = {};
    for (const view of ['now', 'nodes', 'pods'] as const) {
      await opened.evaluate(`location.hash = '#/${view}'`);
      // The work of the change of view is not that of an update.
      await pause(SETTLED_MS);
      const found = await updatesOf(browser, opened, api, asked);
      updates.push(...found);
      perSecond[view] = found.reduce((sum, each) => sum + each, 0) / asked.seconds;
    }
    return {
      nodes: asked.nodes,
      pods: asked.pods,
      firstPaintSeconds: rounded(paintMs / 1_000, 2),
      allNodesSeconds: rounded(shownMs / 1_000, 2),
      nowMsPerSecond: rounded(perSecond['now']!, 2),
      nodesMsPerSecond: rounded(perSecond['nodes']!, 2),
      podsMsPerSecond: rounded(perSecond['pods']!, 2),
      updateP50Ms: rounded(percentile(updates, 0.5), 2),
      updateP99Ms: rounded(percentile(updates, 0.99), 2),
      heapMegabytes: rounded(await heapMegabytes(opened), 2),
    };
  } finally {
    await running.stop();
    await api.stop();
  }
}

/** CPU of each update while nodes change, in milliseconds. */
async function updatesOf(
  browser: Browser,
  opened: Page,
  api: StandInApi,
  { nodes, seconds, changesPerSecond }: Asked,
): Promise<readonly number[]> {
  await browser.startTracing(opened, { categories: ['toplevel', '__metadata'] });
  for (let change = 0; change < seconds * changesPerSecond; change += 1) {
    // A node is silent, and Ready again with the next change.
    api.setReady(Math.floor(change / 2) % nodes, change % 2 === 0 ? 'Unknown' : 'True');
    await pause(1_000 / changesPerSecond);
  }
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString('utf8')) as {
    readonly traceEvents: readonly TraceEvent[];
  };
  return mainThreadUpdates(traceEvents);
}

async function heapMegabytes(opened: Page): Promise<number> {
  const session = await opened.context().newCDPSession(opened);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / MB;
}
