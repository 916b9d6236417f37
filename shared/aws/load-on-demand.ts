/**
 * Loads code with the first call. A load that failed, such as one without a free file descriptor, is tried again by the
 * next call: otherwise one failure would last as long as the execution environment.
 */
export function loadOnDemand<Loaded>(load: () => Promise<Loaded>): () => Promise<Loaded> {
  let loading: Promise<Loaded> | undefined;
  return () => {
    loading ??= load().catch((fault: unknown) => {
      loading = undefined;
      throw fault;
    });
    return loading;
  };
}
