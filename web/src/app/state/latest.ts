// One job at a time, and the latest of those that wait: what came between is not run.

export class Latest {
  private running = false;
  private waiting: (() => Promise<void>) | null = null;

  offer(run: () => Promise<void>): void {
    this.waiting = run;
    if (!this.running) void this.loop();
  }

  private async loop(): Promise<void> {
    this.running = true;
    while (this.waiting) {
      const run = this.waiting;
      this.waiting = null;
      try {
        await run();
      } catch (error) {
        // A defect of the page: it is told as one, and the next job is run all the same.
        reportError(error);
      }
    }
    this.running = false;
  }
}
