import {Component, type ReactNode} from 'react';

/** Shows `fallback` after a component below it has thrown. */
export default class ErrorBoundary extends Component<
  {children: ReactNode; fallback: () => ReactNode},
  {failed: boolean}
> {
  state = {failed: false};

  static getDerivedStateFromError(): {failed: boolean} {
    return {failed: true};
  }

  render(): ReactNode {
    return this.state.failed ? this.props.fallback() : this.props.children;
  }
}
