/** Counts seconds down to zero. */
export class Countdown {
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly tell: (leftS: number) => void;

  /** Calls `tell` with the seconds that are left, at the start and each time they change. */
  constructor(tell: (leftS: number) => void) {
    this.tell = tell;
  }

  /** Starts to count; an earlier count ends. */
  start(seconds: number): void {
    clearInterval(this.timer);
    // Timers pause while a computer sleeps, so the end is a time and not a number of ticks.
    const endsAt = Date.now() + seconds * 1000;
    let told = -1;
    const tick = (): void => {
      const left = Math.max(0, Math.ceil((endsAt - Date.now()) / 1000));
      if (left === 0) {
        clearInterval(this.timer);
      }
      if (left !== told) {
        told = left;
        this.tell(left);
      }
    };
    this.timer = setInterval(tick, 250);
    tick();
  }
}
