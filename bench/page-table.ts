/** The table "Measured in Chromium" of docs/console.md, one column per number of nodes. */
export interface PageFigures {
  readonly nodes: number;
  readonly pods: number;
  readonly firstPaintSeconds: number;
  readonly allNodesSeconds: number;
  /** CPU of the main thread per second while the view is shown. */
  readonly nowMsPerSecond: number;
  readonly nodesMsPerSecond: number;
  readonly podsMsPerSecond: number;
  /** CPU of the main thread for one update. */
  readonly updateP50Ms: number;
  readonly updateP99Ms: number;
  readonly heapMegabytes: number;
}

const ROWS: readonly (readonly [text: string, cell: (figures: PageFigures) => string])[] = [
  ['first paint', ({ firstPaintSeconds }) => `${firstPaintSeconds} s`],
  ['all nodes shown after', ({ allNodesSeconds }) => `${allNodesSeconds} s`],
  ['main thread, Now', ({ nowMsPerSecond }) => `${nowMsPerSecond} ms per second`],
  ['main thread, Nodes', ({ nodesMsPerSecond }) => `${nodesMsPerSecond} ms per second`],
  ['main thread, Pods', ({ podsMsPerSecond }) => `${podsMsPerSecond} ms per second`],
  ['an update, p50', ({ updateP50Ms }) => `${updateP50Ms} ms`],
  ['an update, p99', ({ updateP99Ms }) => `${updateP99Ms} ms`],
  ['JavaScript heap with all nodes and pods', ({ heapMegabytes }) => `${heapMegabytes} MB`],
];

export function pageTable(measured: readonly PageFigures[]): string {
  const head = ['', ...measured.map(({ nodes }) => `${nodes.toLocaleString('en-US')} nodes`)];
  const lines = [head, head.map(() => '---'), ...ROWS.map(([text, cell]) => [text, ...measured.map(cell)])];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
