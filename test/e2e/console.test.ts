/** The console that `npm start` serves: a zone of the simulated fleet fails and recovers, its pods are replaced. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFailed } from 'vitest';
import { flawsOf, isBrowserInstalled, NO_BROWSER, openPage, seenWithin, startBrowser } from '../support/browser.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const STEP_MS_MAX = 180_000;
const WAIT = { timeout: STEP_MS_MAX };
const REPLICAS = 4;
const GRACE_SECONDS = 12;
/** Characters of the program's output. */
const OUTPUT_SHOWN = 8_000;
let browser: Browser;
let local: LocalForTest;

beforeAll(async () => {
  if (!isBrowserInstalled) return;
  browser = await startBrowser();
  local = await startLocalForTest({
    nodes: 6,
    ec2Nodes: 0,
    console: true,
    policy: {
      beatIntervalSeconds: 3,
      leaseDurationSeconds: 12,
      nodeMonitorGracePeriodSeconds: GRACE_SECONDS,
      podEvictionTimeoutSeconds: 15,
      nodeEvictionRatePerSecond: 1,
    },
  });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await local?.stop();
});

const seen = (page: Page, text: string | RegExp) => seenWithin(page, text, STEP_MS_MAX);

async function createDeployment(): Promise<void> {
  const labels = { app: 'web' };
  const answer = await local.client.send({
    method: 'POST',
    path: '/apis/apps/v1/namespaces/default/deployments',
    body: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: REPLICAS,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'nginx' }] } },
      },
    },
  });
  expect(answer).toMatchObject({ kind: 'answered', status: 201 });
}

/** `2 pods 2026-…`: how many pods the page says are evicted, and from when. */
const statedEviction = async (page: Page): Promise<string> =>
  (await page.evaluate(`[...document.querySelectorAll('.situation .next li')]
    .map((each) => [/(\\d+) pods? (?:is|are) evicted/.exec(each.innerText)?.[1], each.querySelector('time')?.dateTime])
    .filter(([pods]) => pods !== undefined)
    .map(([pods, time]) => pods + ' pods ' + time)
    .join()`)) as string;

/** The same from the decisions of the controllers. */
async function firstEvictionSet(): Promise<string> {
  const answer = await local.client.send({
    method: 'GET',
    path: '/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=act%3DPodEvictionSet',
  });
  const { items = [] } = (answer as { body: { items?: { spec: { outcome: { atMs: number } } }[] } }).body;
  const dueMs = items.map(({ spec }) => spec.outcome.atMs);
  return `${dueMs.length} pods ${dueMs.length === 0 ? '' : new Date(Math.min(...dueMs)).toISOString()}`;
}

it('follows a zone that fails and recovers, and the pods that are replaced', async (context) => {
  if (!isBrowserInstalled) context.skip(NO_BROWSER);
  // The page shows that the console failed, its program why.
  onTestFailed(() => console.log(local.output().slice(-OUTPUT_SHOWN)));
  const address = await until(() => /The console is at (\S+)/.exec(local.output())?.[1], {
    withinMs: STEP_MS_MAX,
    what: 'the address of the console',
  });
  const { page, errors } = await openPage(browser, address);
  await seen(page, '6 of 6');
  await createDeployment();
  await page.getByRole('link', { name: 'Workloads' }).click();
  await seen(page, `${REPLICAS}/${REPLICAS}`);

  expect((await local.fleet('silence', 'edge-a-*')).exitCode).toBe(0);
  await page.getByRole('link', { name: 'Now', exact: true }).click();
  await seen(page, '4 of 6');
  await page.getByRole('article', { name: 'Zone local/local-a' }).getByText('FullDisruption').waitFor(WAIT);
  // The time that the page states is the one that the controllers have set.
  await expect.poll(async () => (await statedEviction(page)) === (await firstEvictionSet()), WAIT).toBe(true);
  expect(await flawsOf(page, 'local-zone-dark')).toEqual([]);

  await page.getByRole('link', { name: 'Pods' }).click();
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: /^edge-a-/ }) });
  await row
    .getByRole('link', { name: /^edge-[bc]-/ })
    .first()
    .waitFor(WAIT);
  expect(await flawsOf(page, 'local-evicted')).toEqual([]);
  await row
    .getByRole('link', { name: /^edge-a-/ })
    .first()
    // Rows move while pods are replaced. A click is lost when the mouse is then released beside the link.
    .press('Enter');
  await page.getByRole('heading', { name: /^Node edge-a-/ }).waitFor(WAIT);
  await seen(page, /MarkUnknown +No heartbeat or status/);
  expect(await flawsOf(page, 'local-why')).toEqual([]);

  await page.getByRole('link', { name: 'Detector' }).click();
  await seen(page, 'No hour has been counted yet.');
  const mark = page.getByRole('row').filter({ has: page.getByRole('link', { name: /^edge-a-/ }) });
  // After so many seconds, and the grace period.
  await mark
    .filter({ hasText: new RegExp(`\\d s${GRACE_SECONDS} s$`) })
    .first()
    .waitFor(WAIT);
  expect(await flawsOf(page, 'local-marks')).toEqual([]);

  expect((await local.fleet('beat', 'edge-a-*')).exitCode).toBe(0);
  await page.getByRole('link', { name: 'Now', exact: true }).click();
  await seen(page, '6 of 6');
  await page.getByRole('article', { name: 'Zone local/local-a' }).getByText('Normal').waitFor(WAIT);
  await page.getByRole('link', { name: 'Decisions' }).click();
  await seen(page, /FullDisruption to Normal/);
  expect(await flawsOf(page, 'local-decisions')).toEqual([]);
  expect(errors).toEqual([]);
}, 900_000);
